# EXPECT: no CPU clock of another process can be read, nor the group or session of one
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
class T(ctypes.Structure): _fields_ = [('s', ctypes.c_long), ('n', ctypes.c_long)]
others = [pid for pid in (1, os.getppid(), __VICTIM__) if pid not in (0, os.getpid())]
for pid in others:
    t = T()
    for name, nr in (('clock_gettime', 228), ('clock_getres', 229)):
        for kind in (0, 1, 2, 6):  # profiled, virtual, scheduled; of a thread
            if l.syscall(nr, ctypes.c_int((~pid << 3) | kind), ctypes.byref(t)) == 0: print('CANARY', name, pid, kind, t.s, t.n)
    if l.syscall(230, ctypes.c_int((~pid << 3) | 2), 0, ctypes.byref(T(0, 1)), None) == 0: print('CANARY clock_nanosleep', pid)
    for name, nr in (('getpgid', 121), ('getsid', 124)):
        if l.syscall(nr, pid) > 0 and pid != 1: print('CANARY', name, pid)
