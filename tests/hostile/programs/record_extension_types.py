# EXPECT: types that only the program knows are refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
for body in (b'\xd6\xff\xff\xff\xff\xff', b'\xc7\xff\x00' + bytes(255), b'\x92\xa5edges\xd4\x01\x00', b'\xc1'):
    os.write(3, len(body).to_bytes(4, 'little') + body)
os._exit(0)
