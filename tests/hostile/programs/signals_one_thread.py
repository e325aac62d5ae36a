# EXPECT: no signal reaches another: tgkill and tkill by number
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
print(l.syscall(234, __VICTIM__, __VICTIM__, 9), l.syscall(200, __VICTIM__, 9), ctypes.get_errno())
