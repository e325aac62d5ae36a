# EXPECT: no memory of System V, which would stay behind
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True); one = l.shmget(0, 4096, 0o1600)
if one >= 0: print('CANARY segment'); l.shmctl(one, 0, None)
print(one, ctypes.get_errno())
