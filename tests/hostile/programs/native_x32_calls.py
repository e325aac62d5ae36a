# EXPECT: calls of the x32 kind are not let through
# OUTCOME: failed signal | succeeded
# CONTROL: silent: this kernel has no x32
import ctypes, os
me = os.getpid(); r = ctypes.CDLL(None).syscall(0x40000000 | 57)
if r >= 0: os.write(1, b'CANARY forked')
if os.getpid() != me: os._exit(0)
print(r)
