# EXPECT: a signal to the own group ends nobody else
# OUTCOME: succeeded | failed
# CONTROL: silent: its group is its own at every level
import os, signal
try: os.killpg(0, signal.SIGKILL)
except OSError as e: print(type(e).__name__)
