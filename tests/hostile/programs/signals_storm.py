# EXPECT: a timer that fires without pause delays its own run only
# OUTCOME: succeeded | exceeded cpu | failed
# CONTROL: silent: it harms its own process only
import signal
count = 0
def heard(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, heard); signal.setitimer(signal.ITIMER_REAL, 1e-5, 1e-5)
while count < 3000: pass
signal.setitimer(signal.ITIMER_REAL, 0); print('heard', count)
