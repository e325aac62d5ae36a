# EXPECT: no fifo, device or socket is made outside
# OUTCOME: succeeded
# CONTROL: breaches
import os, stat, socket
for kind in (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK):
    for place in ('/var/tmp', '/dev/shm'):
        try: os.mknod(f'{place}/special{kind}', kind | 0o666, os.makedev(1, 5))
        except OSError as e: print(type(e).__name__)
try: socket.socket(socket.AF_UNIX).bind('/var/tmp/special.sock')
except OSError as e: print(type(e).__name__)
