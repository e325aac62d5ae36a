# EXPECT: no signal reaches another: by a handle of the process
# OUTCOME: succeeded | failed
# CONTROL: breaches
import os, signal
signal.pidfd_send_signal(os.pidfd_open(__VICTIM__), signal.SIGKILL)
