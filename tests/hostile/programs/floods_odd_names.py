# EXPECT: files whose names are no text stay nowhere, and are told nowhere
# OUTCOME: succeeded
# CONTROL: breaches
import os
for place in (b'/tmp', b'/var/tmp', b'/dev/shm'):
    for name in (b'\x1b[2Jline\nline', b'\xff\xfe', b'-rf', b'x' * 255, b'<script>'):
        try: os.close(os.open(place + b'/' + name, os.O_CREAT | os.O_WRONLY)); os.mkdir(place + b'/' + name + b'd', 0)
        except OSError as e: print(type(e).__name__)
