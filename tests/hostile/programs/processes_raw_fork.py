# EXPECT: no process is made: fork by number
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
me = os.getpid(); r = ctypes.CDLL(None, use_errno=True).syscall(57)
if r >= 0: print('CANARY forked', flush=True)
if os.getpid() != me: os._exit(0)
print(r)
