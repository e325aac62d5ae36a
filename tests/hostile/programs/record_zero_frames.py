# EXPECT: frames of nothing without end are refused at the first
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
while True: os.write(3, bytes(1 << 16))
