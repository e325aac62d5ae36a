# EXPECT: a run that says its end and goes on ends with the clock
# OUTCOME: exceeded wall | exceeded cpu | failed record
# CONTROL: silent: the limits hold at every level
import os, time
from backprobe import record as r
os.write(3, r.end_frame(r.End(ending='ended', exit_code=0)))
while True: time.sleep(60)
