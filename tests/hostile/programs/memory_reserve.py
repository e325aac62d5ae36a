# EXPECT: address space beyond the limit is refused
# OUTCOME: exceeded memory | failed
# CONTROL: silent: the limit on address space holds at every level
import mmap
held = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
print('CANARY reserved')
