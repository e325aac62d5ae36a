# EXPECT: what goes to the record pipe by another number is refused
# OUTCOME: failed record
# CONTROL: silent: it harms its own record only
import os
os.dup2(3, 1); print('not a frame, but text enough to be taken for the head of one', flush=True); os.write(1, bytes(64))
