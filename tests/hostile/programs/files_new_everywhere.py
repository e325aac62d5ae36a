# EXPECT: nothing new appears in any folder that all may write
# OUTCOME: succeeded
# CONTROL: breaches
import os, tempfile
for place in ('/tmp', '/var/tmp', '/dev/shm', '__CANARY_DIR__', '/run', '/dev/mqueue'):
    try: os.close(tempfile.mkstemp(dir=place)[0])
    except OSError as e: print(place, type(e).__name__)
