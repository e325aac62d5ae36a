# EXPECT: no datagram leaves
# OUTCOME: succeeded
# CONTROL: breaches
import socket
try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', __PORT__)); print('sent')
except OSError as e: print(type(e).__name__)
