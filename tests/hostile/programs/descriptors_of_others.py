# EXPECT: no descriptor of another process can be opened
# OUTCOME: succeeded
# CONTROL: breaches
import os
for pid in (__VICTIM__, os.getppid()):
    for fd in range(16):
        try: os.close(os.open(f'/proc/{pid}/fd/{fd}', os.O_RDONLY | os.O_NONBLOCK)); print('CANARY opened', pid, fd)
        except OSError as e: print(type(e).__name__)
