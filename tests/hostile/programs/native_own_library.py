# EXPECT: a library that is written over in memory is nobody else's
# OUTCOME: failed | succeeded | exceeded
# CONTROL: silent: pages are copied when written at every level
import ctypes
l = ctypes.CDLL(None); at = ctypes.cast(l.malloc, ctypes.c_void_p).value & ~4095
print(l.mprotect(ctypes.c_void_p(at), 8192, 7)); ctypes.memset(at, 0xCC, 4096); l.malloc(64)
