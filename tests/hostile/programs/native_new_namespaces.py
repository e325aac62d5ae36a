# EXPECT: no namespace in which it would be root
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
print('CANARY root' if l.unshare(0x10000000 | 0x20000) == 0 else ctypes.get_errno())
