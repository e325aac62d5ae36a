# EXPECT: no program is started: by a shell
# OUTCOME: succeeded
# CONTROL: breaches
import os, subprocess
os.system('cat /etc/passwd')
try: print(subprocess.run('cat /etc/passwd', shell=True, capture_output=True).stdout)
except OSError as e: print(type(e).__name__)
