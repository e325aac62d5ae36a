# EXPECT: a header within the stream is refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
os.write(3, __VALID_STREAM__); os._exit(0)
