# EXPECT: no file that lies in no folder
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
print('CANARY' if l.memfd_create(b'x', 0) >= 0 else ctypes.get_errno())
