# EXPECT: what is registered for the end ends with the limit
# OUTCOME: exceeded cpu | exceeded wall
# CONTROL: silent: the limits hold at every level
import atexit
@atexit.register
def again():
    while True: pass
