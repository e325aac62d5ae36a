# EXPECT: files do not stay
# OUTCOME: failed | succeeded
# CONTROL: breaches
import tempfile
for place in (None, '/var/tmp', '/dev/shm'):
    try:
        with tempfile.NamedTemporaryFile(delete=False, dir=place) as file: file.write(b'x' * 4096)
    except OSError as e: print(type(e).__name__)
