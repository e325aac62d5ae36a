# EXPECT: files of other runs cannot be moved, removed or exchanged, though their folder is 777
# OUTCOME: succeeded
# CONTROL: breaches
import os
for path in ('__CANARY_FILE__', '__OTHER_RUN_FILE__', '__SHM_FILE__'):
    for change in (lambda: os.replace(path, path + '.gone'), lambda: os.unlink(path)):
        try: change()
        except OSError as e: print(type(e).__name__)
