# EXPECT: a frame that comes byte by byte ends with the clock
# OUTCOME: exceeded wall
# CONTROL: silent: the limits hold at every level
import os, time
os.write(3, (1 << 19).to_bytes(4, 'little'))
while True: os.write(3, b'x'); time.sleep(0.005)
