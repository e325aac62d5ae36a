"""Programs for BP820: a sum of losses in which each turn replaces the one before."""

PROGRAMS = {
    "a function that returns the sum of tasks": """
import torch
from torch import nn
import torch.nn.functional as F

trunk = nn.Linear(4, 8)
heads = nn.ModuleDict({"a": nn.Linear(8, 1), "b": nn.Linear(8, 1)})
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=0.01)
for step in range(4):
    x = torch.randn(6, 4)
    total = 0.0
    for name, head in heads.items():
        error = head(trunk(x)) - x[:, :1]
        total = error.pow(2).mean()  # <- BP820
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
""",
    "right: the best of several starts is kept": """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = torch.zeros(())
    for start in range(3):
        candidate = net(torch.randn(6, 4)).pow(2).mean()
        if start == 0 or candidate < loss:
            loss = candidate
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: each turn walks back its own": """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loss = 0.0
for step in range(3):
    loss = net(torch.randn(6, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: without a zero before the loop the last value may be what is meant": """
import torch
from torch import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(6, 4)
    for scale in (1.0, 0.5):
        loss = (net(x * scale)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a helper that returns the sum under another name": """
import torch
from torch import nn
body, heads = nn.Linear(4, 8), nn.ModuleDict({"a": nn.Linear(8, 1), "b": nn.Linear(8, 1)})
opt = torch.optim.SGD([*body.parameters(), *heads.parameters()], lr=0.1)
def weighted(outputs, targets, weights):
    whole = torch.zeros(())
    for key, weight in weights.items():
        whole = weight * nn.functional.mse_loss(outputs[key], targets[key])  # <- BP820
    return whole
for _ in range(4):
    z = body(torch.randn(8, 4))
    out = {key: head(z) for key, head in heads.items()}
    loss = weighted(out, {key: torch.zeros(8, 1) for key in heads}, {"a": 1.0, "b": 0.5})
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: a helper that keeps the last one beside the sum": """
import torch
from torch import nn
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def both(out, targets):
    last = torch.zeros(())
    parts = []
    for target in targets:
        last = (out - target).pow(2).mean()
        parts.append(last)
    return torch.stack(parts).sum()
for _ in range(4):
    loss = both(net(torch.randn(8, 4)), [torch.zeros(2), torch.ones(2)])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the last loss of a carried state": """
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(3, 8), nn.Linear(8, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)
for step in range(4):
    xs = torch.randn(5, 8, 3)
    y = xs.sum((0, 2)).unsqueeze(1)
    h = torch.zeros(8, 8)
    loss = 0.0
    for x in xs:
        h = cell(x, h)
        loss = (head(h) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
""",
    "the sum is an attribute": """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.trunk = nn.Linear(4, 8)
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 1), "b": nn.Linear(8, 1)})
        self.optimizer = torch.optim.Adam([*self.trunk.parameters(), *self.heads.parameters()], lr=0.01)

    def step(self, x):
        self.loss = torch.zeros(())
        for name, head in self.heads.items():
            error = head(self.trunk(x)) - x[:, :1]
            self.loss = error.pow(2).mean()  # <- BP820
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

trainer = Trainer()
for step in range(4):
    trainer.step(torch.randn(6, 4))
""",
    "right: the sum is an attribute, and each turn adds to it": """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.trunk = nn.Linear(4, 8)
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 1), "b": nn.Linear(8, 1)})
        self.optimizer = torch.optim.Adam([*self.trunk.parameters(), *self.heads.parameters()], lr=0.01)

    def step(self, x):
        self.loss = torch.zeros(())
        for name, head in self.heads.items():
            error = head(self.trunk(x)) - x[:, :1]
            self.loss = self.loss + error.pow(2).mean()
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

trainer = Trainer()
for step in range(4):
    trainer.step(torch.randn(6, 4))
""",
    "right: an attribute is read in the loop": """
import torch
from torch import nn

class Search:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def step(self):
        self.loss = torch.zeros(())
        for start in range(3):
            self.loss = self.net(torch.randn(6, 4)).pow(2).mean()
            self.optimizer.zero_grad()
            self.loss.backward()
            self.optimizer.step()
        self.loss.detach().sqrt()

search = Search()
for step in range(3):
    search.step()
""",
}
