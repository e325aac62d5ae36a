import sys

import torch


def deeper(n):
    x = torch.ones(1)
    return deeper(n + 1) + x


def down(n):
    global deepest
    deepest = n
    down(n + 1)


deepest = 0
try:
    down(0)
except RecursionError as error:
    print(type(error).__name__, deepest > 900)
deeper(0)
