# EXPECT: lists of structs whose every field is left out, a byte each, take no memory of the supervisor beyond a bound
# OUTCOME: exceeded record | exceeded cpu | exceeded wall
# CONTROL: silent: the bound is the supervisor's own at every level
import os, struct
def send(body): os.write(3, struct.pack('<I', len(body)) + body)
row = b'\xdc\x00\x1a\xcd%b\xaddautograd.grad'.replace(b'\xadd', b'\xad') + b'\x00\x00\xc0\xc0\xc0\x90\xc0\xc2\xc0\xc2\xc3\xc2\xc0' + b'\x00' * 7
row += b'\xa7running\xc0\xc2\xdc\x10\x00' + b'\x90' * 4096
at = 1000
while at < 2800:
    send(b'\x92\xaebackward_calls\xdc\x00\x64' + b''.join(row % struct.pack('>H', at + n) for n in range(100)))
    at += 100
send(b'\x92\xa3end\x82\xa6ending\xa5ended\xa9exit_code\x00')
os._exit(0)
