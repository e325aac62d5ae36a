# EXPECT: an address space cut into as many pieces as the kernel allows ends as quickly as any
# OUTCOME: succeeded | exceeded memory | failed
# CONTROL: silent: the kernel's own bound holds at every level
import ctypes, mmap
l = ctypes.CDLL(None, use_errno=True)
l.mmap.restype = ctypes.c_void_p
start = l.mmap(None, ctypes.c_size_t(400 << 20), 0, 0x22, -1, ctypes.c_long(0))
cut = 0
while l.mprotect(ctypes.c_void_p(start + cut * 8192), 4096, 3) == 0: cut += 1
print(cut)
