# EXPECT: timers, which are counted by uid, are not taken from all its other processes
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l, made, one = ctypes.CDLL(None, use_errno=True), 0, ctypes.c_int()
while made < 200000 and l.syscall(222, 1, None, ctypes.byref(one)) == 0:
    made += 1
print('CANARY' if made > 1000 else made)
