"""Signals while it trains: a timer's handler that computes, one that raises; SIGTERM and SIGINT with handlers and without.

usage: signals.py SIGNAL HOW        SIGNAL: alarm, term, int; HOW: counts, raises, default
"""
import os
import signal
import sys

import torch

KIND, HOW = sys.argv[1:3]
NUMBER = {"alarm": signal.SIGALRM, "term": signal.SIGTERM, "int": signal.SIGINT}[KIND]
w = torch.ones(4, requires_grad=True)
rung = []


class Told(Exception):
    pass


def ring(number, frame):
    rung.append(number)
    (w.detach() * 2).sum()
    if HOW == "raises":
        raise Told(f"signal {number}")


def step(n):
    loss = (w * torch.full((4,), float(n))).sum()
    if n == 7:
        os.kill(os.getpid(), NUMBER)
    loss.backward()
    with torch.no_grad():
        w.sub_(w.grad, alpha=0.01)
    w.grad = None
    return loss.item()


if HOW != "default":
    signal.signal(NUMBER, ring)
losses = []
try:
    for n in range(20):
        losses.append(step(n))
except (Told, KeyboardInterrupt) as error:
    print(type(error).__name__, error, error.__traceback__.tb_next.tb_lineno)
    if KIND == "int" and HOW == "default":
        raise
finally:
    print(len(losses), rung, [loss.hex() for loss in losses[-2:]], w.grad, flush=True)
    print(signal.getsignal(NUMBER) is ring, signal.getitimer(signal.ITIMER_REAL), flush=True)
if KIND == "alarm" and HOW == "counts":
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    n = 0
    while len(rung) < 40:
        step(n % 5)
        n += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(len(rung) >= 40, w.isfinite().all().item())
