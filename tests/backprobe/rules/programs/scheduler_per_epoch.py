"""BP772 scheduler-per-epoch."""

PROGRAMS = {
    "one cycle over all batches, stepped per epoch": """
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 4), torch.randn(96, 1)), batch_size=8)
n_epochs = 5
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=n_epochs * len(loader))
for epoch in range(n_epochs):
    for xb, yb in loader:
        opt.zero_grad()
        loss = (net(xb) - yb).pow(2).mean()
        loss.backward()
        opt.step()
    sched.step()  # <- BP772
""",
    "right: built for the epochs": """
import torch, torch.nn as nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 4), torch.randn(96, 1)), batch_size=8)
n_epochs = 5
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=n_epochs)
for epoch in range(n_epochs):
    for xb, yb in loader:
        opt.zero_grad()
        loss = (net(xb) - yb).pow(2).mean()
        loss.backward()
        opt.step()
    sched.step()
""",
    "right: the run ends long before the schedule does": """
import torch
from torch import nn

model, epochs, batches = nn.Linear(3, 1), 30, torch.randn(6, 8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(batches))
for epoch in range(3):
    for x in batches:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    schedule.step()
""",
}

_WARM = """
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


class Run:
    def __init__(self, data, epochs=4):
        self.net, self.epochs = nn.Linear(4, 1), epochs
        self.loader = DataLoader(TensorDataset(data), batch_size=8)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.total = {total}
        self.schedule = LambdaLR(self.optimizer, {function})

    def epoch(self):
        for (x,) in self.loader:
            self.optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.optimizer.step()
            {inside}

    def fit(self):
        for _ in range(self.epochs):
            self.epoch()
            {outside}


Run(torch.randn(40, 4)).fit()
"""

_HELPER = """
import torch
from torch import nn
from torch.optim import lr_scheduler


def linear(optimizer, warm, total):
    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return max(0.0, (total - step) / (total - warm))

    return lr_scheduler.LambdaLR(optimizer, lr_lambda=factor)


def train(net, batches, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = linear(optimizer, {lengths})
    for epoch in range(epochs):
        for at, x in enumerate(batches):
            optimizer.zero_grad()
            net(x).pow(2).mean().backward()
            optimizer.step()
        schedule.step(){mark}


train(nn.Linear(4, 1), torch.randn(6, 8, 4), 4)
"""

PROGRAMS |= {
    "a function of all batches, stepped per epoch by another method": _WARM.format(
        total="self.epochs * len(self.loader)",
        function="lambda step: 1 - step / self.total",
        inside="pass",
        outside="self.schedule.step()  # <- BP772",
    ),
    "right: a function of all batches, stepped with each": _WARM.format(
        total="self.epochs * len(self.loader)",
        function="lambda step: 1 - step / self.total",
        inside="self.schedule.step()",
        outside="pass",
    ),
    "right: a function of the epochs": _WARM.format(
        total="self.epochs",
        function="lambda step: 1 - step / self.total",
        inside="pass",
        outside="self.schedule.step()",
    ),
    "right: a function that makes batches of its epochs": _WARM.format(
        total="self.epochs * len(self.loader)",
        function="lambda epoch: 1 - len(self.loader) * epoch / self.total",
        inside="pass",
        outside="self.schedule.step()",
    ),
    "a helper is given the count of all batches": _HELPER.format(
        lengths="4, epochs * len(batches)", mark="  # <- BP772"
    ),
    "right: a helper is given the count of epochs": _HELPER.format(lengths="1, epochs", mark=""),
    "right: the length of something else": """
import torch
from torch import nn

model, stages, batches = nn.Linear(3, 1), ("easy", "hard"), torch.randn(6, 8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 2 * len(stages)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / total)
for stage in stages:
    for epoch in range(2):
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        schedule.step()
""",
}

PROGRAMS |= {
    "right: stepped with every third batch, by a function that counts so": """
import torch
from torch import nn

model, epochs, batches = nn.Linear(3, 1), 3, torch.randn(6, 8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = epochs * len(batches)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda third: 1 - 3 * third / total)
for epoch in range(epochs):
    for at, x in enumerate(batches):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        if at % 3 == 2:
            schedule.step()
""",
    # to look at each way from name to name would take hours
    "very many ways lead from the length to names": """
import torch
from torch import nn

a = b = c = 1
"""
    + "a = (a + b + c) % 97\nb = (a * 2 + c) % 97\nc = (b + a) % 97\n" * 60
    + """
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [torch.randn(4, 3) for _ in range(8)]
total = a - a + b - b + c - c + len(loader) * 4
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: max(0.1, 1 - step / total))
for epoch in range(4):
    for x in loader:
        opt.zero_grad()
        model(x).pow(2).mean().backward()
        opt.step()
    sched.step()  # <- BP772
""",
}
