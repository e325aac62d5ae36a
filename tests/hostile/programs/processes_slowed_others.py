# EXPECT: no other process is made slower, kept on a core, or put behind others
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
for name, call in (('nice', lambda: os.setpriority(os.PRIO_PROCESS, __VICTIM__, 19)), ('core', lambda: os.sched_setaffinity(__VICTIM__, {0})),
                   ('idle', lambda: os.sched_setscheduler(__VICTIM__, os.SCHED_IDLE, os.sched_param(0)))):
    try: call(); print('CANARY', name)
    except OSError as e: print(type(e).__name__)
if l.syscall(251, 1, __VICTIM__, 3 << 13) == 0 or l.syscall(314, __VICTIM__, bytes(48), 0) == 0: print('CANARY order')
