# EXPECT: a process with a session of its own does not stay
# OUTCOME: failed | succeeded
# CONTROL: breaches
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.write(1, b'CANARY daemon'); os.closerange(0, 64); time.sleep(60)
