# EXPECT: no file without a name outside
# OUTCOME: succeeded
# CONTROL: breaches
import os
for place in ('/var/tmp', '__CANARY_DIR__', '/run'):
    try: os.write(os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600), b'x'); print('CANARY', place)
    except OSError as e: print(type(e).__name__)
