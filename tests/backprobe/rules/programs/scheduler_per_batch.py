"""BP768 scheduler-per-batch."""

_STEPS = """
import torch
from torch import nn

settings = {{"epochs": 5, "every": {every}, "gamma": {gamma}}}

def train_epoch(model, batches, optimizer, schedule):
    for x in batches:
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()
        {inner}

def run(settings):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, settings["every"], gamma=settings["gamma"])
    batches = [torch.randn(8, 4) for _ in range({batches})]
    for epoch in range(settings["epochs"]):
        train_epoch(model, batches, optimizer, schedule)
        {outer}

run(settings)
"""


def _steps(*, every: int, gamma: float, batches: int = 6, inner: str = "schedule.step()", outer: str = "pass") -> str:
    return _STEPS.format(every=every, gamma=gamma, batches=batches, inner=inner, outer=outer)


PROGRAMS = {
    "a step of some epochs, stepped by the batch": _steps(every=2, gamma=0.3, inner="schedule.step()  # <- BP768"),
    "a step of some epochs, and many batches": _steps(
        every=4, gamma=0.5, batches=12, inner="schedule.step()  # <- BP768"
    ),
    "a step of some batches that are more than an epoch's": _steps(every=5, gamma=0.1, batches=4),
    "a step of some batches that leaves enough": _steps(every=3, gamma=0.8),
    "a step of more batches than epochs": _steps(every=9, gamma=0.1, batches=10),
    "a step of some epochs, stepped by the epoch": _steps(every=1, gamma=0.1, inner="pass", outer="schedule.step()"),
    "a cosine over the epochs, stepped by the batch": """
import torch
from torch import nn

config = {"epochs": 5, "lr": 0.1}
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
epochs = config["epochs"]
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
batches = [torch.randn(8, 4) for _ in range(6)]
for epoch in range(epochs):
    for x in batches:
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()
        schedule.step()  # <- BP768
""",
    "an exponential decay in the training step of a class": """
import torch
from torch import nn

class Fit:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters(), lr=1e-2)
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.opt, gamma=0.5)

    def training_step(self, x):
        loss = (self.net(x) - x[:, :1]).abs().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.sched.step()  # <- BP768

    def run(self, data, epochs):
        for _ in range(epochs):
            for x in data:
                self.training_step(x)

Fit(nn.Linear(4, 1)).run([torch.randn(8, 4) for _ in range(16)], 4)
""",
    "by the batch, over all of them": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(8, 4) for _ in range(6)]
epochs = 5
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(batches))
for epoch in range(epochs):
    for x in batches:
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
""",
    "by the epoch, a hundredth in the end": """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[4, 6], gamma=0.1)
for epoch in range(8):
    for x in torch.randn(5, 8, 4):
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()
    schedule.step()
""",
    "warm restarts go on and on, and a short run at the end of a long one": """
import torch
from torch import nn

model, other = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
second = torch.optim.SGD(other.parameters(), lr=1e-7)
restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=5)
linear = torch.optim.lr_scheduler.LinearLR(second, start_factor=1.0, end_factor=0.01, total_iters=20)
for epoch in range(5):
    for x in torch.randn(5, 8, 4):
        optimizer.zero_grad()
        second.zero_grad()
        (model(x) + other(x) - 1).pow(2).mean().backward()
        optimizer.step()
        second.step()
        restarts.step()
        linear.step()
""",
    "milestones in epochs, stepped by the batch": """
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
epochs = 6
sched = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[3, 5], gamma=0.1)
batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(10)]
for epoch in range(epochs):
    for xb, yb in batches:
        opt.zero_grad()
        loss = (net(xb) - yb).pow(2).mean()
        loss.backward()
        opt.step()
        sched.step()  # <- BP768
""",
}
