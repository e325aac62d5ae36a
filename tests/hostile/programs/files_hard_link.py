# EXPECT: a hard link does not carry a file over to where it may be read
# OUTCOME: succeeded
# CONTROL: breaches
import os
for path in ('__CANARY_FILE__', '__OTHER_RUN_FILE__', '/etc/passwd'):
    for place in ('/tmp', '/dev/shm', '/var/tmp'):
        try:
            os.link(path, f'{place}/hard'); print(open(f'{place}/hard').read()); os.unlink(f'{place}/hard')
        except OSError as e: print(type(e).__name__)
    try: print(open(path).read())
    except OSError as e: print(type(e).__name__)
