# EXPECT: an exit that nobody hears of is no success
# OUTCOME: failed record
# CONTROL: silent: it harms its own record only
import os
os._exit(0)
