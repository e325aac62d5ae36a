# EXPECT: no filter of its own: their room is counted for all programs of the machine together
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000) * 4096)
program = struct.pack('HxxxxxxQ', 4096, ctypes.addressof(code))
l.prctl(38, 1, 0, 0, 0)
made = 0
while made < 8 and (l.prctl(22, 2, program, 0, 0) == 0 or l.syscall(317, 1, 0, program) == 0): made += 1
print('CANARY' if made else ctypes.get_errno(), made)
