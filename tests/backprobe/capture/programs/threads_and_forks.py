import os
import signal
import sys
import threading
import time

import torch

w = torch.ones(2, requires_grad=True)
(w * 1).sum().backward()  # torch makes its engine anew at a fork's first pass, without a lock: not in four threads at once
w.grad = None
results = {}


def train(i):
    x = torch.ones(2, requires_grad=True)
    for _ in range(20):
        y = (x * i).sum()
        y.backward()
    results[i] = x.grad.tolist()


threads = [threading.Thread(target=train, args=(i,)) for i in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(results.items()))
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    z = (w * 3).sum()
    z.backward()
    print("child", w.grad.tolist())
    sys.stdout.flush()
    os._exit(7)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status), w.grad)


class Expired(Exception):
    pass


def ring(*_):
    raise Expired


signal.signal(signal.SIGALRM, ring)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.05)  # in the block: on a busy machine it rings at once
    while True:
        a = w * 2
        b = a + 1
except Expired:
    print("expired")
c = w * 2
try:
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while True:
        c = c * 1
except Expired as error:
    print(type(error).__name__, error.__traceback__.tb_frame.f_code.co_name)
