# EXPECT: no page that is shared to be read can be opened for writing: no other run would see it change
# OUTCOME: succeeded
# CONTROL: silent: it looks for what must never be there
import ctypes
l = ctypes.CDLL(None, use_errno=True)
for line in open('/proc/self/maps'):
    span, mode, _, device, inode, *name = line.split(maxsplit=5)
    start, end = (int(one, 16) for one in span.split('-'))
    if mode.endswith('s') and l.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 3) == 0:
        ctypes.memset(start, 65, 1); print('CANARY shared', span, name)
