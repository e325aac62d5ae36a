# EXPECT: a run that closes everything ends, and is told from one that ended well
# OUTCOME: failed record | failed
# CONTROL: silent: it harms its own run only
import os
os.closerange(0, 64)
