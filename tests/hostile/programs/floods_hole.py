# EXPECT: a file of a terabyte that is all hole is refused
# OUTCOME: failed
# CONTROL: breaches
import os
for place in ('/var/tmp', '/tmp'):
    try: fd = os.open(f'{place}/hole', os.O_CREAT | os.O_RDWR)
    except OSError: continue
    os.ftruncate(fd, 1 << 40)
    print('CANARY')
raise SystemExit(1)
