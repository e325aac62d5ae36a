# EXPECT: nothing stays in a keyring of the uid for the next run
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
for ring in (-1, -2, -3, -4, -5):
    if l.syscall(248, b'user', b'backprobe', b'left', 4, ring) > 0 or l.syscall(250, 0, ring, 1) > 0:
        print('CANARY ring', ring)
    print(ctypes.get_errno())
