# EXPECT: the kernel sends no signal in its name: by the owner of a descriptor
# OUTCOME: succeeded | failed
# CONTROL: breaches
import fcntl, os, signal, time
reading, writing = os.pipe()
for word, value in ((8, __VICTIM__), (10, signal.SIGKILL)):
    try: print(fcntl.fcntl(reading, word, value))
    except OSError as e: print(type(e).__name__)
fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(writing, b'x'); time.sleep(0.2)
