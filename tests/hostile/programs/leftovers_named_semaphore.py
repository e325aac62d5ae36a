# EXPECT: a semaphore with a name does not stay
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True); l.sem_open.restype = ctypes.c_void_p
print(l.sem_open(b'/backprobe', 0o100, 0o600, 1), ctypes.get_errno())
