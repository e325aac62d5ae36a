# EXPECT: no device of the machine opens, nor a terminal, of which it has so many
# OUTCOME: succeeded
# CONTROL: breaches
import os
for name in 'ptmx pts/ptmx tty console kvm fuse userfaultfd mem port kmsg hpet loop-control net/tun vhost-net vsock snd/seq dri/card0 nvidiactl mqueue shm'.split():
    for flags in (os.O_RDWR, os.O_RDONLY):
        try: os.open(f'/dev/{name}', flags | os.O_NOCTTY); print('CANARY', name) if name != 'shm' else None
        except OSError as e: print(type(e).__name__)
