"""One training step of a model, again and again, as often as the bench asks for it.

usage: python train.py MODEL MODE        (started by bench/overhead.py, which talks to it over its input and output)
"""

import sys

import torch
from models import build

from bench import pace

torch.set_num_threads(1)
model, inputs = build(sys.argv[1])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def step():
    optimizer.zero_grad()
    loss = model(*inputs)
    loss.backward()
    optimizer.step()


pace.serve(step, sys.argv[2], model, inputs, optimizer)
