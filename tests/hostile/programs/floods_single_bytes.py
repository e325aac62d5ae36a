# EXPECT: a record and an output that come byte by byte end at their limits, and take nobody's memory
# OUTCOME: exceeded | failed record
# CONTROL: silent: the reader counts at every level
import os
os.write(3, (1 << 20).to_bytes(4, 'little'))
while True: os.write(3, b'Z'); os.write(1, b'O')
