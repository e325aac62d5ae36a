# EXPECT: an abstract unix socket is reached by no raw call
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True)
name = b'\0' + b'__ABSTRACT_SOCKET__'
fd = l.syscall(41, 1, 1, 0)
print(fd, l.syscall(42, fd, struct.pack('<H', 1) + name, 2 + len(name)), ctypes.get_errno())
