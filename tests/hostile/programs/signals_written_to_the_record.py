# EXPECT: signals that Python writes to the record pipe are no rows
# OUTCOME: failed record | succeeded
# CONTROL: silent: it harms its own record only
import os, signal
os.set_blocking(3, False); signal.signal(signal.SIGUSR1, lambda *_: None); signal.set_wakeup_fd(3, warn_on_full_buffer=False)
for _ in range(5000): os.kill(os.getpid(), signal.SIGUSR1)
