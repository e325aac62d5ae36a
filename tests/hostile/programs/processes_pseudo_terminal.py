# EXPECT: no process behind a terminal
# OUTCOME: failed
# CONTROL: breaches
import os, pty
pid, fd = pty.fork()
if pid == 0: os.write(1, b'CANARY in a terminal'); os._exit(0)
print(os.read(fd, 100))
