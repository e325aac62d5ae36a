# EXPECT: it stays the kind of process that it is
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
for kind in (0xffffffff, 0x0040000, 0x0400000, 0x0008, 0x0010):
    print('CANARY' if l.syscall(135, kind) >= 0 else ctypes.get_errno(), hex(kind))
