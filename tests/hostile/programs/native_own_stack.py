# EXPECT: a stack that is written over ends one process
# OUTCOME: failed signal | failed
# CONTROL: silent: it harms its own process only
import ctypes
held = ctypes.create_string_buffer(8); ctypes.memset(ctypes.addressof(held) - (1 << 12), 0x41, 1 << 22)
