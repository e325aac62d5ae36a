# EXPECT: a program that is deaf to every signal still ends at its limit
# OUTCOME: exceeded cpu
# CONTROL: silent: SIGKILL holds at every level
import signal
for number in signal.valid_signals() - {9, 19}: signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True: pass
