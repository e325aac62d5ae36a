# EXPECT: no process by the oldest of the calls, whose memory it would share
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, mmap, os
held = mmap.mmap(-1, 4096, prot=7)  # vfork, and in the child exit: its parent's stack stays as it is
held.write(bytes.fromhex('b83a0000000f0585c0750931ffb83c0000000f05c3'))
found = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(held)))()
print('CANARY' if found > 0 else found)
