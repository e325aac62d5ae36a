# EXPECT: rows that name rows which are not there are refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
from backprobe import record as r
for frame in r.batch_frames('edges', [r.Edge(node=7, slot=0, to_node=8)]): os.write(3, frame)
os.write(3, r.end_frame(r.End(ending='ended', exit_code=0))); os._exit(0)
