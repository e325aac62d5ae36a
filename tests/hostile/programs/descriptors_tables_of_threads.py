# EXPECT: no thread gets a table of descriptors of its own, past the limit of the process
# OUTCOME: succeeded | failed signal
# CONTROL: breaches
import ctypes, threading
l = ctypes.CDLL(None, use_errno=True)
def own():
    print('CANARY closed apart' if l.syscall(436, 50, 60, 2) == 0 else ctypes.get_errno())
one = threading.Thread(target=own); one.start(); one.join()
stack = ctypes.create_string_buffer(1 << 16)
top = (ctypes.addressof(stack) + (1 << 16) - 64) & ~15
ctypes.memmove(top, (ctypes.cast(l.pause, ctypes.c_void_p).value or 0).to_bytes(8, 'little'), 8)
print('CANARY made apart' if l.syscall(56, 0x10000 | 0x800 | 0x100, top, None, None, None) > 0 else ctypes.get_errno(), flush=True)
