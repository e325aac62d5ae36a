# EXPECT: no limit of another process is read or set
# OUTCOME: succeeded
# CONTROL: breaches
import os, resource
victim = int('__VICTIM__')
for pid in (victim, os.getppid()):
    for words in ((), ((8, 8),)):
        try: print('CANARY', resource.prlimit(pid, resource.RLIMIT_NOFILE, *words)) if pid > 0 else None
        except OSError as e: print(type(e).__name__)
