# EXPECT: a process whose first thread has ended while another works on ends with the limit
# OUTCOME: exceeded cpu | exceeded wall
# CONTROL: silent: the limits hold at every level
import ctypes, threading
l = ctypes.PyDLL(None)
def work():
    while True: sum(range(1000))
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(60, 0)
