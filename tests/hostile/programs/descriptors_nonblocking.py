# EXPECT: pipes that do not block confuse nobody but their writer
# OUTCOME: exceeded output | failed
# CONTROL: silent: it harms its own run only
import os
for fd in (1, 2, 3): os.set_blocking(fd, False)
while True:
    try: os.write(1, b'x' * 65536)
    except BlockingIOError: pass
