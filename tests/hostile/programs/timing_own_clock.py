# EXPECT: a program that turns its clocks back still ends at its limit
# OUTCOME: exceeded cpu
# CONTROL: silent: the limits hold at every level
import time
time.time = time.monotonic = time.perf_counter = time.process_time = lambda: 0.0
while time.monotonic() < 1: pass
