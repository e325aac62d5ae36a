"""BP711 scheduler-never-stepped."""

HEAD = """
import torch
from torch import nn
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

LOOP = """
for x in torch.randn({turns}, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
"""

PROGRAMS = {
    "in a class": """
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.optim = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.schedule = StepLR(self.optim, 2)  # <- BP711

    def step(self, x):
        self.optim.zero_grad()
        self.model(x).pow(2).mean().backward()
        self.optim.step()

trainer = Trainer()
for x in torch.randn(3, 8, 3):
    trainer.step(x)
""",
    "one step is no pattern": HEAD
    + "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)\n"
    + LOOP.format(turns=1),
    "a run that is cut short": HEAD
    + "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)\n"
    + LOOP.format(turns=3)
    + "raise SystemExit(1)\n",
    "handed to a function": HEAD
    + "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 200)\ndef end_of_epoch(s):\n    pass\n"
    + LOOP.format(turns=3)
    + "end_of_epoch(schedule)\n",
    "of an optimizer that rests": HEAD
    + "other = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)\n"
    + "schedule = torch.optim.lr_scheduler.StepLR(other, 2)\n"
    + LOOP.format(turns=3),
}
