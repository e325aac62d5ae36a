# EXPECT: the wish to die with the warm process cannot be taken back
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
print('CANARY' if ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0 else 'refused')
