# EXPECT: a descriptor of / is no way around the rules of paths
# OUTCOME: succeeded
# CONTROL: breaches
import os
try:
    root = os.open('/', os.O_PATH | os.O_DIRECTORY)
    print(os.read(os.open('etc/passwd', os.O_RDONLY, dir_fd=root), 200))
except OSError as e: print(type(e).__name__)
