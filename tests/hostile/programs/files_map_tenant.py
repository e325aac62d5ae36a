# EXPECT: a shared mapping of another run's file is refused
# OUTCOME: succeeded
# CONTROL: breaches
import mmap, os
for path in ('__CANARY_FILE__', '__OTHER_RUN_FILE__', '__SHM_FILE__'):
    try:
        with mmap.mmap(os.open(path, os.O_RDWR), 0) as held: held[:4] = b'MINE'
    except (OSError, ValueError) as e: print(type(e).__name__)
