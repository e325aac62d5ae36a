# EXPECT: shared pages of /dev/zero, of a memfd, of any flags and protection are counted, or cannot be had
# OUTCOME: succeeded | exceeded memory | failed | exceeded cpu
# CONTROL: breaches
import ctypes, os
l = ctypes.CDLL(None, use_errno=True); l.mmap.restype = ctypes.c_void_p
M = 64 << 20
held = 0
fds = [-1]
for mode in (os.O_RDWR, os.O_RDONLY):
    try: fds.append(os.open('/dev/zero', mode))
    except OSError as e: print('zero', type(e).__name__)
for fd in fds:
    for flags in (0x01, 0x03):  # MAP_SHARED, MAP_SHARED_VALIDATE
        for n in range(11):
            a = l.mmap(None, ctypes.c_size_t(M), 1, flags | (0x20 if fd < 0 else 0), fd, ctypes.c_long(0))
            if a in (None, ctypes.c_void_p(-1).value) or l.mprotect(ctypes.c_void_p(a), ctypes.c_size_t(M), 3): break
            ctypes.memset(a, 1, M)
            l.munmap(ctypes.c_void_p(a + 4096), ctypes.c_size_t(M - 4096)); held += M
            if held > (1300 << 20): print('CANARY held MiB', held >> 20, flush=True); os._exit(0)
if l.syscall(319, b'x', 0) >= 0: print('a memfd')  # memfd_create
print('held', held >> 20)
