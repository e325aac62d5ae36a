# EXPECT: the memory and the descriptors of another process cannot be reached by number
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
handle = l.syscall(434, __VICTIM__, 0)
if handle >= 0:
    print('CANARY handle', l.syscall(438, handle, 0, 0), l.syscall(440, handle, None, 0, 4, 0))
class Piece(ctypes.Structure):
    _fields_ = (('at', ctypes.c_void_p), ('size', ctypes.c_size_t))
here = ctypes.create_string_buffer(64)
ours = Piece(ctypes.addressof(here), 64)
for at in (0x400000, 0x555555554000, 0x7FFFFFFFE000):
    theirs = Piece(at, 64)
    for call in (310, 311):
        if l.syscall(call, __VICTIM__, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0) >= 0:
            print('CANARY memory')
print(l.syscall(312, __VICTIM__, __VICTIM__, 2, 0, 0), ctypes.get_errno())
