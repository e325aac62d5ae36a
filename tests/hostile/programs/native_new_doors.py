# EXPECT: none of the kernel's newer doors is open: rings, programs, counters, faults, mounts by descriptor
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True)
room = ctypes.create_string_buffer(256)
doors = {
    'io_uring_setup': (425, 4, room), 'userfaultfd': (323, 1), 'bpf': (321, 0, struct.pack('5I', 2, 4, 4, 1, 0) + bytes(100), 120),
    'perf_event_open': (298, struct.pack('IIQ', 1, 128, 0) + bytes(112), 0, -1, -1, 0), 'fsopen': (430, b'tmpfs', 0),
    'open_tree': (428, -100, b'/', 0), 'memfd_secret': (447, 0), 'signalfd': (289, -1, bytes(8), 8, 0), 'timerfd': (283, 1, 0),
    'pidfd': (434, 1, 0), 'seccomp_listener': (317, 1, 8, None), 'name_to_handle': (303, -100, b'/', room, room, 0),
    'landlock': (444, None, 0, 1), 'kcmp': (312, 1, 1, 2, 0, 0), 'syslog': (103, 10, None, 0), 'quotactl': (179, 0x800001, None, 0, room),
    'add_swap': (167, b'/x', 0), 'ioperm': (173, 0, 1, 1), 'modify_ldt': (154, 0, room, 16),
}
for name, (number, *words) in doors.items():
    found = l.syscall(number, *words)
    print('CANARY' if found >= 0 else ctypes.get_errno(), name)
