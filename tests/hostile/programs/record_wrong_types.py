# EXPECT: a text where a number belongs is refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os, msgspec
body = msgspec.msgpack.encode(['edges', [['x', None, {}]]])
os.write(3, len(body).to_bytes(4, 'little') + body); os._exit(0)
