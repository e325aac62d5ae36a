# EXPECT: shared memory with a name does not stay
# OUTCOME: succeeded | failed
# CONTROL: breaches
from multiprocessing import shared_memory
one = shared_memory.SharedMemory(create=True, size=1 << 16); one.buf[0] = 1
import os
os._exit(1)
