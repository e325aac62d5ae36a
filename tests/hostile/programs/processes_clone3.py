# EXPECT: no process by clone3, whose flags no filter sees, nor by vfork
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os, struct
l, me = ctypes.CDLL(None, use_errno=True), os.getpid()
for call in (lambda: l.syscall(435, struct.pack('11Q', 0, 0, 0, 0, 17, *[0] * 6), 88), lambda: l.syscall(435, struct.pack('8Q', 0x10000000, *[0] * 3, 17, *[0] * 3), 64)):
    made = call()
    if os.getpid() != me or made == 0:
        os._exit(0)
    print('CANARY' if made > 0 else ctypes.get_errno())
