# EXPECT: a process with a session of its own does not stay
# OUTCOME: failed | succeeded
# CONTROL: breaches
import os, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.write(writing, b'1')  # the program may end now: this one is out of its session
    os.write(1, b'CANARY daemon'); os.closerange(0, 64); time.sleep(60)
os.close(writing)
os.read(reading, 1)
