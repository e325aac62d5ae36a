# EXPECT: folders that their owner cannot enter do not stay
# OUTCOME: succeeded
# CONTROL: breaches
import os
for place in ('/tmp', '/var/tmp', '/dev/shm'):
    try: os.makedirs(f'{place}/a/b/c'); open(f'{place}/a/b/c/file', 'w').close(); os.symlink('/', f'{place}/a/b/root'); os.chmod(f'{place}/a/b', 0)
    except OSError as e: print(type(e).__name__)
