# EXPECT: the dynamic loader is no other way to start a program
# OUTCOME: failed
# CONTROL: breaches
import os
os.execv('/lib64/ld-linux-x86-64.so.2', ['ld', '/bin/cat', '/etc/passwd'])
