# EXPECT: one row that is replaced again and again ends at the limits, and takes no memory
# OUTCOME: exceeded record | exceeded wall | exceeded cpu | failed record
# CONTROL: silent: it is the run's own record
import os, struct
rows = 20000
frame = b'\x92\xa7threads\xdd' + struct.pack('>I', rows) + b'\x93\x01\xa1x\xc2' * rows
while True:
    os.write(3, struct.pack('<I', len(frame)) + frame)
