# EXPECT: data in the first packet goes nowhere
# OUTCOME: succeeded
# CONTROL: breaches
import socket
try:
    s = socket.socket(); s.settimeout(1); s.sendto(b'x', 0x20000000, ('127.0.0.1', __PORT__)); print('sent')
except OSError as e: print(type(e).__name__)
