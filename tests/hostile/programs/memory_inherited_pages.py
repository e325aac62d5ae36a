# EXPECT: no page of the warm process is shared for writing: what a child writes, no other run sees
# OUTCOME: succeeded
# CONTROL: silent: it looks for what must never be there
import ctypes
for line in open('/proc/self/maps'):
    span, mode, _, device, inode, *name = line.split(maxsplit=5)
    if mode.startswith('rw') and mode.endswith('s'):
        start, end = (int(one, 16) for one in span.split('-'))
        ctypes.memset(start, 65, end - start)
        print('CANARY shared', span, name)
