# EXPECT: no protocol that the kernel would have to load
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
for family in (2, 10):
    for kind, protocol in ((1, 262), (1, 132), (5, 132), (6, 33), (2, 136), (3, 1), (2, 1), (3, 255)):
        if l.socket(family, kind, protocol) >= 0: print('CANARY', family, kind, protocol)
        elif ctypes.get_errno() == 93: print('CANARY looked for', family, kind, protocol)
