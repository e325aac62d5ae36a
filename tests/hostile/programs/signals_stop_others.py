# EXPECT: nobody is stopped
# OUTCOME: succeeded | failed
# CONTROL: breaches
import os, signal
for pid in (__VICTIM__, -__VICTIM__):
    try: os.kill(pid, signal.SIGSTOP); print('stopped')
    except OSError as e: print(type(e).__name__)
