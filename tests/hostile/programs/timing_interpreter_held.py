# EXPECT: a call that holds the interpreter and never comes back ends with the clock
# OUTCOME: exceeded wall | exceeded cpu | failed signal
# CONTROL: silent: the limits hold at every level
import ctypes, signal
signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while True: ctypes.PyDLL(None).pause()
