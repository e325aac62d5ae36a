# EXPECT: no descriptor travels through a socket, where it counts for nobody
# OUTCOME: succeeded
# CONTROL: breaches
import array, socket
here, there = socket.socketpair()
try: here.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [here.fileno()] * 200))]); print('CANARY sent')
except OSError as e: print(type(e).__name__)
