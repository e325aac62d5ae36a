# EXPECT: bytes behind the end are refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
from backprobe import record as r
os.write(3, r.end_frame(r.End(ending='ended', exit_code=0)) + b'\x04\0\0\0more'); os._exit(0)
