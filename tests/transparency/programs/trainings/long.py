"""Trains for two thousand steps, and says what lives, and how large the process is, on the way."""
import gc
import json
import resource
import sys
import weakref

import torch
from torch import nn

STEPS = 2000
torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
dropped, told = [], {}


def resident():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * resource.getpagesize()


def step(number):
    x = torch.randn(8, 16)
    hidden = net[0](x)
    out = net[2](net[1](hidden))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    kept = (x, hidden, out, loss, *(parameter.grad for parameter in net.parameters()))
    dropped.extend(weakref.ref(tensor) for tensor in kept)
    optimizer.step()
    return loss.item()


last = 0.0
for number in range(STEPS):
    last = step(number)
    if (number + 1) % 500 == 0:
        optimizer.zero_grad()
        gc.collect()
        told[number + 1] = [len(gc.get_objects()), resident(), sum(ref() is not None for ref in dropped)]
        dropped.clear()
print(json.dumps({"last": last.hex(), "told": told}))
sys.stdout.flush()
