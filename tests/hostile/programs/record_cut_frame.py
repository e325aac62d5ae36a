# EXPECT: a frame that never comes whole is refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
os.write(3, (1 << 19).to_bytes(4, 'little') + b'half'); os._exit(0)
