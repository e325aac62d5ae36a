# EXPECT: no program is started: by posix_spawn
# OUTCOME: succeeded | failed
# CONTROL: breaches
import os
os.waitpid(os.posix_spawn('/bin/cat', ['cat', '/etc/passwd'], {}), 0)
