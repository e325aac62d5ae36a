# EXPECT: text that is none is refused
# OUTCOME: failed record
# CONTROL: silent: the decoder is the same at every level
import os
body = b'\x92\xa7sources\x91\x94\x00\xa4\xff\xfe\xed\xa0\xa0\xa2\x80\x80'
os.write(3, len(body).to_bytes(4, 'little') + body); os._exit(0)
