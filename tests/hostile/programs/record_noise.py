# EXPECT: random bytes are refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
held = memoryview(os.urandom(1 << 20))
while held: held = held[os.write(3, held):]
os._exit(0)
