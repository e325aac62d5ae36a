# EXPECT: shared pages that are unmapped but for one are counted, or cannot be had
# OUTCOME: succeeded | exceeded memory | failed | exceeded cpu
# CONTROL: breaches
import ctypes, time
l = ctypes.CDLL(None, use_errno=True); l.mmap.restype = ctypes.c_void_p
held = 0
M = 64 << 20
for i in range(24):   # 1.5 GiB, far above the limit of 600 MiB
    a = l.mmap(None, ctypes.c_size_t(M), 3, 0x21, -1, ctypes.c_long(0))
    if a in (None, ctypes.c_void_p(-1).value): print('refused', i, ctypes.get_errno()); break
    ctypes.memset(a, 1, M)
    l.munmap(ctypes.c_void_p(a + 4096), ctypes.c_size_t(M - 4096))
    held += M
print('CANARY held MiB' if held > (1300 << 20) else 'held', held >> 20)
time.sleep(0.2)
