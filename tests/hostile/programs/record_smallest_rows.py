# EXPECT: rows as small as rows can be take no memory of the supervisor beyond a bound
# OUTCOME: exceeded record | exceeded cpu | exceeded wall
# CONTROL: silent: the bound is the supervisor's own at every level
import os, struct
def send(body): os.write(3, struct.pack('<I', len(body)) + body)
for start in range(1000, 900_000, 5_000):
    rows = b''.join(b'\x93' + struct.pack('>BI', 0xCE, start + n) + b'\xa0\xc2' for n in range(5_000))
    send(b'\x92\xa7threads\xdd' + struct.pack(">I", 5_000) + rows)
send(b'\x92\xa3end\x82\xa6ending\xa5ended\xa9exit_code\x00')
os._exit(0)
