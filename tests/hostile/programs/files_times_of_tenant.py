# EXPECT: the times of another tenant's file stay: who may write a file may set its times without opening it
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes, os
l = ctypes.CDLL(None, use_errno=True)
for path in ('__CANARY_FILE__', '__OTHER_RUN_FILE__', '__SHM_FILE__', '__CANARY_DIR__'):
    try:
        os.utime(path)
    except OSError as error:
        print(error.errno)
    print(l.syscall(132, path.encode(), None), l.syscall(235, path.encode(), None), l.syscall(261, -100, path.encode(), None))
