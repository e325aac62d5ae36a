# EXPECT: its share of the CPU cannot be made larger
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
print('CANARY' if l.syscall(141, 0, 0, 19) == 0 else ctypes.get_errno())
print('CANARY' if l.syscall(144, 0, 3, bytes(4)) == 0 else ctypes.get_errno())
