# EXPECT: a script of its own is not started
# OUTCOME: failed | succeeded
# CONTROL: breaches
import os, subprocess
with open('script', 'w') as file: file.write('#!/bin/sh\ncat /etc/passwd\n')
try: os.chmod('script', 0o700)
except OSError as e: print(type(e).__name__)
print(subprocess.run(['./script'], capture_output=True).stdout)
