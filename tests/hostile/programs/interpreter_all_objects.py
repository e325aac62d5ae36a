# EXPECT: the objects of the warm process hold no socket and no other program
# OUTCOME: succeeded
# CONTROL: silent: nothing of the kind is in the warm process at any level
import gc, socket
for one in gc.get_objects():
    if isinstance(one, socket.socket) and one.fileno() >= 0: print('CANARY', one)
print('looked')
