# EXPECT: no other process is made slower, kept on a core, or put behind others
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
victim = int('__VICTIM__')
l = ctypes.CDLL(None, use_errno=True)
for name, call in (('nice', lambda: os.setpriority(os.PRIO_PROCESS, victim, 19)), ('core', lambda: os.sched_setaffinity(victim, {0})),
                   ('idle', lambda: os.sched_setscheduler(victim, os.SCHED_IDLE, os.sched_param(0)))):
    try: call(); print('CANARY', name)
    except OSError as e: print(type(e).__name__)
if l.syscall(251, 1, victim, 3 << 13) == 0 or l.syscall(314, victim, bytes(48), 0) == 0: print('CANARY order')
