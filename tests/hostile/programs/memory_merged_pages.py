# EXPECT: no page is offered for merging with another run's, and none is pushed out to be timed
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, mmap
l = ctypes.CDLL(None, use_errno=True)
m = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for name, n in (('MERGEABLE', 12), ('PAGEOUT', 21), ('COLD', 20), ('COLLAPSE', 25), ('HWPOISON', 100), ('SOFT_OFFLINE', 101)):
    try: m.madvise(n); print('CANARY', name)
    except OSError as e: print(name, e.errno)
for n in (4, 16): m.madvise(n)  # DONTNEED, DONTDUMP: what libraries ask for goes on to work
if l.prctl(67, 1, 0, 0, 0) == 0: print('CANARY PR_SET_MEMORY_MERGE')
