# EXPECT: a shape whose empty lists would fill the memory is refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os, msgspec
row = [0, 0, 'value', 'float32', [1 << 40, 0], b'']
body = msgspec.msgpack.encode(['small_values', [row]])
os.write(3, len(body).to_bytes(4, 'little') + body)
from backprobe import record as r
os.write(3, r.end_frame(r.End(ending='ended', exit_code=0))); os._exit(0)
