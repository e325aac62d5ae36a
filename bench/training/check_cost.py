"""Three training steps of a model, and what they cost in processor time, copies of the process included.

usage: python check_cost.py MODEL STEPS FILE        (started by bench/gradient_check.py, under capture or plain)

FILE gets, as JSON, the seconds of all steps, those of the least step, and how often the process was copied.
"""

import json
import os
import resource
import sys
from pathlib import Path

import torch
from models import build
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
copies = [0]


def count():
    copies[0] += 1


def cost():
    """Processor time of this process and of the copies that ended, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Fifty(nn.Module):
    """Fifty parameters, each a separate tensor."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(25)))

    def forward(self, x):
        return self.layers(x).square().mean()


name, steps, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
model, inputs = (Fifty(), (torch.randn(32, 16),)) if name == "fifty" else build(name)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
os.register_at_fork(after_in_parent=count)
spent = []
for _ in range(steps):
    before = cost()
    optimizer.zero_grad()
    loss = model(*inputs)
    loss.backward()
    optimizer.step()
    spent.append(cost() - before)
Path(target).write_text(json.dumps({"all": sum(spent), "least": min(spent), "copies": copies[0]}))
