# EXPECT: no socket of a rare family: packets, netlink, vsock, the kernel's ciphers
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
for family, kind, protocol in ((16, 3, 0), (16, 3, 15), (17, 2, 0), (38, 5, 0), (40, 1, 0), (31, 3, 1), (29, 3, 1), (21, 5, 0), (44, 3, 0)):
    one = l.syscall(41, family, kind, protocol)
    print('CANARY' if one >= 0 else ctypes.get_errno(), family)
