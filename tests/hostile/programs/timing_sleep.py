# EXPECT: a program that only waits ends at its wall clock
# OUTCOME: exceeded wall
# CONTROL: silent: the limits hold at every level
import time
time.sleep(10_000)
