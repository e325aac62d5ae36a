# EXPECT: no page of the program becomes part of a pipe, to be changed after it was counted
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
class Piece(ctypes.Structure):
    _fields_ = (('at', ctypes.c_void_p), ('size', ctypes.c_size_t))
page, (reading, writing) = ctypes.create_string_buffer(b'A' * 4096), os.pipe()
for number, words in ((278, (writing, ctypes.byref(Piece(ctypes.addressof(page), 4096)), 1, 8)), (276, (reading, writing, 1, 2)), (275, (reading, None, writing, None, 1, 2))):
    print('CANARY' if l.syscall(number, *words) >= 0 else ctypes.get_errno(), number)
