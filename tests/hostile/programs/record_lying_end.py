# EXPECT: an end that says success does not hide the code of the process
# OUTCOME: failed
# CONTROL: silent: the decoder is the same at every level
import os
from backprobe import record as r
os.write(3, r.end_frame(r.End(ending='ended', exit_code=0))); os._exit(9)
