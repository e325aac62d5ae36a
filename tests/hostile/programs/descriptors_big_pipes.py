# EXPECT: pipes cannot be made larger than they come
# OUTCOME: succeeded
# CONTROL: breaches
import fcntl, os
reading, writing = os.pipe()
try: print('CANARY', fcntl.fcntl(writing, 1031, 1 << 20))
except OSError as e: print(type(e).__name__)
