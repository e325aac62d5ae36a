# EXPECT: a pipe that hands over each byte by itself is not to be had: the supervisor would pay for every one
# OUTCOME: succeeded | exceeded | failed record
# CONTROL: breaches
import fcntl, os
for fd in (1, 3):
    try: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_WRONLY | os.O_DIRECT); print('CANARY packets by flag', fd)
    except OSError as e: print(type(e).__name__)
    for call in (os.open, lambda path, flags: os.open(path, flags, dir_fd=os.open('/', os.O_RDONLY | os.O_PATH))):
        try: call(f'/proc/self/fd/{fd}', os.O_WRONLY | os.O_DIRECT); print('CANARY packets by name', fd)
        except OSError as e: print(type(e).__name__)
