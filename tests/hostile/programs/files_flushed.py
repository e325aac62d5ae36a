# EXPECT: files of the host cannot be flushed by a run: no such call reaches the kernel
# OUTCOME: succeeded | exceeded cpu | exceeded wall
# CONTROL: breaches
import ctypes, mmap, os, time
l = ctypes.CDLL(None, use_errno=True)
r, w = os.pipe()
for name, nr in (('fsync', 74), ('fdatasync', 75)):  # the kernel itself answers EINVAL for a pipe
    if l.syscall(nr, r) < 0 and ctypes.get_errno() == 22: print('CANARY', name, 'reaches the kernel')
for name, nr in (('sync', 162), ('syncfs', 306), ('sync_file_range', 277)):
    if l.syscall(nr, r, ctypes.c_long(0), ctypes.c_long(0), 2) >= 0: print('CANARY', name)
fd = os.open(os.__file__, os.O_RDONLY); n = 0; t = time.time()
while time.time() - t < 0.5:
    try: os.fsync(fd); n += 1
    except OSError as e: print(e); break
with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as held:
    print('flushed', n, 'times', len(held))
