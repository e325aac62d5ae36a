# EXPECT: so many as the limit says, then no more
# OUTCOME: succeeded
# CONTROL: silent: the limit on descriptors holds at every level
import os
held = []
try:
    while True: held.append(os.open('/dev/null', os.O_RDONLY))
except OSError as e: print(len(held), e.errno); print('CANARY' if len(held) > 64 else 'few')
for fd in held: os.close(fd)
