# EXPECT: no file is named by a handle, past the rules of paths
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, struct
l = ctypes.CDLL(None, use_errno=True)
for path in (b'__CANARY_FILE__', b'__CANARY_DIR__', b'/'):
    handle, mount = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128)), ctypes.c_int()
    print('CANARY named' if l.syscall(303, -100, path, handle, ctypes.byref(mount), 0) == 0 else ctypes.get_errno())
    print('CANARY opened' if l.syscall(304, -100, handle, 0) >= 0 else ctypes.get_errno())
