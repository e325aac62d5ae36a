# EXPECT: no page of the machine's store of huge ones, which no limit of the run counts
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, errno
l = ctypes.CDLL(None, use_errno=True)
for size in (0, 21 << 26, 30 << 26):
    found = l.syscall(9, None, 1 << 30 if size == 30 << 26 else 1 << 21, 3, 0x22 | 0x40000 | size, -1, 0)
    print('CANARY it was looked at' if found != -1 or ctypes.get_errno() != errno.EPERM else 'refused')
