# EXPECT: no process is made: clone by number, without the flag of a thread
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
me = os.getpid(); r = ctypes.CDLL(None, use_errno=True).syscall(56, 17, 0, 0, 0, 0)
if r >= 0: os.write(1, b'CANARY cloned')
if r == 0: os._exit(0)
print(r)
