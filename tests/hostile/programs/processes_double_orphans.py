# EXPECT: orphans of orphans, stopped, in sessions of their own, end with the run
# OUTCOME: succeeded | failed | exceeded
# CONTROL: silent: the warm process ends what outlives a run, at every level
import os, signal, time
for _ in range(3):
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setpgid(0,0) if os.getpid()!=os.getsid(0) else None
                os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)
            os._exit(0)
    except OSError as e: print('fork', e.errno); break
print('left')
