# EXPECT: a filter of its own does not replace ours
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
program = struct.pack('HxxxxxxQ', 1, ctypes.addressof(code))
l.prctl(38, 1, 0, 0, 0); print(l.prctl(22, 2, program, 0, 0), l.syscall(317, 1, 0, program), ctypes.get_errno())
pid = l.syscall(57)
if pid >= 0: print('CANARY forked', flush=True)
if pid == 0: l._exit(0)
