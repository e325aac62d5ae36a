# EXPECT: files without number do not fill a table of the host
# OUTCOME: failed
# CONTROL: breaches
import os
for n in range(100_000):
    for place in ('/tmp', '/var/tmp'):
        try: os.close(os.open(f'{place}/small{n}', os.O_CREAT | os.O_WRONLY))
        except OSError as e:
            if place == '/tmp': raise
    if n > 3000: print('CANARY', n); break
