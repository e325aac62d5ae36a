# EXPECT: the socket call by number is refused like the one by name
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True)
fd = l.syscall(41, 2, 1, 0)
print(fd, l.syscall(42, fd, struct.pack('<H', 2) + struct.pack('>H', __PORT__) + bytes([127, 0, 0, 1]) + bytes(8), 16), ctypes.get_errno())
