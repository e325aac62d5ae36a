# EXPECT: a thread that writes to the record beside capture spoils it, and no more
# OUTCOME: failed record | exceeded | succeeded
# CONTROL: silent: it harms its own record only
import os, threading, torch
def write():
    while True: os.write(3, b'\x10\x00\x00\x00' + os.urandom(16))
threading.Thread(target=write, daemon=True).start()
for _ in range(200): x = torch.ones(2, requires_grad=True); (x * x).sum().backward()
