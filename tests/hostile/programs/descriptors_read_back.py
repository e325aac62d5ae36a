# EXPECT: who takes the bytes of its own pipes away again is ended by the clock all the same
# OUTCOME: exceeded wall | exceeded cpu | exceeded output | failed
# CONTROL: silent: the pipes are the run's own
import os, threading
def drain(number):
    mine = os.open(f'/proc/self/fd/{number}', os.O_RDONLY)
    while True:
        os.read(mine, 1 << 16)
for number in (1, 2, 3):
    threading.Thread(target=drain, args=(number,)).start()
threading.Event().wait()
