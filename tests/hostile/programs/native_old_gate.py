# EXPECT: calls through the gate of 32 bits are not let through
# OUTCOME: failed signal | succeeded
# CONTROL: breaches
import ctypes, mmap, os
me = os.getpid()
held = mmap.mmap(-1, 4096, prot=7); held.write(bytes([0x53, 0xB8, 2, 0, 0, 0, 0xCD, 0x80, 0x5B, 0x48, 0x98, 0xC3]))
r = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(held)))()
if r >= 0: os.write(1, b'CANARY forked')
if os.getpid() != me: os._exit(0)
print(r)
