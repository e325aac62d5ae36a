# EXPECT: what another tenant does with files cannot be watched
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
for start in (lambda: l.inotify_init1(0), lambda: l.syscall(253), lambda: l.fanotify_init(0x200, 0)):
    watch = start()
    if watch >= 0 and max(l.inotify_add_watch(watch, b'__CANARY_DIR__', 0xFFF), l.syscall(301, watch, 1, 0x20, -100, b'/')) >= 0:
        print('CANARY watches')
    print(ctypes.get_errno())
