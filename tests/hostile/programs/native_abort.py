# EXPECT: abort ends one process
# OUTCOME: failed signal
# CONTROL: silent: it harms its own process only
import ctypes
ctypes.CDLL(None).abort()
