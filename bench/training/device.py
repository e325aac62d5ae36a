"""One training step of a model on a device, again and again, as often as it is asked for.

usage: python device.py MODEL MODE DEVICE        (started by tests/gpu/overhead.py, which talks to it)
"""

import sys

import models
import torch
import transformer

from bench import device_pace

name, mode, device = sys.argv[1:4]
torch.set_default_device(device)
build = transformer.build if name in ("large", "small") else models.build
model, inputs = build(name)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def step():
    optimizer.zero_grad()
    loss = model(*inputs)
    loss.backward()
    optimizer.step()


device_pace.serve(step, mode, device, model, inputs, optimizer)
