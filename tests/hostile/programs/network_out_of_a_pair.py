# EXPECT: the one socket that a run may have, a pair's, leads nowhere else
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, socket, struct
l = ctypes.CDLL(None, use_errno=True)
paths = [b'\1\0' + b'__PATH_SOCKET__\0', b'\1\0\0' + b'__ABSTRACT_SOCKET__']
for kind in (1, 2, 5):
    pair = (ctypes.c_int * 2)()
    if l.syscall(53, 1, kind, 0, pair): continue
    for address in paths:
        for name, words in {'connect': (42, pair[0], address, len(address)), 'sendto': (44, pair[0], b'x', 1, 0, address, len(address)), 'unbind': (42, pair[0], bytes(2), 2),
            'bind': (49, pair[0], b'\1\0', 2), 'listen': (50, pair[0], 5), 'sendmsg': (46, pair[0], bytes(56), 0), 'setsockopt': (54, pair[0], 1, 16, struct.pack('i', 1), 4)}.items():
            if l.syscall(*words) >= 0: print('CANARY', kind, name)
for kind in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    try: socket.socket(kind, socket.SOCK_DGRAM).connect(('127.0.0.1', __PORT__)); print('CANARY', kind)
    except OSError as error: print(error)
