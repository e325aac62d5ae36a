# EXPECT: shared memory is no memory beside the limit
# OUTCOME: failed
# CONTROL: breaches
import os
fd = os.open('/dev/shm/held', os.O_RDWR | os.O_CREAT)
for _ in range(64): os.write(fd, bytes(1 << 20))
print('CANARY held')
