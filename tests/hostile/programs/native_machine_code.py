# EXPECT: machine code of its own makes no other calls than Python code
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, mmap, os
me = os.getpid()
held = mmap.mmap(-1, 4096, prot=7); held.write(bytes([0xB8, 57, 0, 0, 0, 0x0F, 0x05, 0xC3]))
r = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(held)))()
if r >= 0: os.write(1, b'CANARY forked')
if os.getpid() != me: os._exit(0)
print(r)
