# EXPECT: the clock of the machine is neither set nor asked how it is set
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True); room = ctypes.create_string_buffer(512)
for number, words in ((159, (room,)), (305, (0, room)), (227, (0, struct.pack('qq', 0, 0))), (164, (struct.pack('qq', 0, 0), None))):
    print('CANARY' if l.syscall(number, *words) >= 0 else ctypes.get_errno(), number)
