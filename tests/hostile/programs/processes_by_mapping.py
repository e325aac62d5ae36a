# EXPECT: a program is not started by execveat of its descriptor, by the loader's path, nor by execve
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
env = (ctypes.c_char_p * 1)(None)
for path in ('/bin/echo', '/usr/bin/echo', '/lib64/ld-linux-x86-64.so.2'):
    argv = (ctypes.c_char_p * 4)(path.encode(), *((b'/bin/echo',) if 'ld-' in path else ()), b'CANARY was started', None)
    print(path, l.syscall(59, path.encode(), argv, env), ctypes.get_errno(), flush=True)
    try: fd = os.open(path, os.O_RDONLY)
    except OSError as e: print(path, type(e).__name__); continue
    print(path, l.syscall(322, fd, b'', argv, env, 0x1000), ctypes.get_errno(), flush=True)
