# EXPECT: no ring, no mark on a file, no rule of its own, no key: each with the words that the kernel would take
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True)
room = ctypes.create_string_buffer(4096)
for name, number, *words in (
    ('ring', 425, 8, room), ('rules', 444, struct.pack('Q', 1 << 13 - 1), 8, 0), ('key', 248, b'user', b'k', b'v', 1, -3), ('events', 294, 0),
    ('marks', 300, 0x200, 0), ('faults', 323, 1), ('secret', 447, 0), ('anonymous', 319, b'm', 0), ('handle', 434, 1, 0), ('keys', 330, 0, 0),
    ('wait', 441, -1, room, 1, 0, None, 8), ('counters', 298, struct.pack('IIQ', 1, 128, 9) + bytes(112), 0, -1, -1, 0), ('map', 458, 0, 4096, 0), ('attributes', 459, room, 0),
):
    print('CANARY' if l.syscall(number, *words) >= 0 else ctypes.get_errno(), name)
