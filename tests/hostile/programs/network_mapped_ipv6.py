# EXPECT: IPv4 by way of IPv6 is no way out
# OUTCOME: succeeded
# CONTROL: breaches
import socket
try: socket.create_connection(('::ffff:127.0.0.1', __PORT__), timeout=1); print('connected')
except OSError as e: print(type(e).__name__)
