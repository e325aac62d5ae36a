# EXPECT: the root of any process leads back to no file of the host
# OUTCOME: succeeded
# CONTROL: breaches
import os
for pid in ('self', '1', os.getppid()):
    try: print(open(os.path.join('/proc', str(pid), 'root', 'etc/passwd')).read())
    except OSError as e: print(pid, type(e).__name__)
