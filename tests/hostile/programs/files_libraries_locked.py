# EXPECT: no file that other runs read is locked by a run without a folder
# OUTCOME: succeeded
# CONTROL: breaches
import fcntl, os
try: fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB); print('CANARY locked' if os.getpid() != 1 else 'locked')
except OSError as e: print(type(e).__name__)
