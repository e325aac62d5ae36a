# EXPECT: a count of four billion in a frame of ten bytes is refused without room for it
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
for head in (b'\xdd', b'\xdf', b'\xdb', b'\xc6'):
    body = b'\x92\xa5edges' + head + b'\xff\xff\xff\xff'
    os.write(3, len(body).to_bytes(4, 'little') + body)
os._exit(0)
