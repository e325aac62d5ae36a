"""BP306 graph-grows-each-step."""

_ENERGY = """
import torch
from torch import nn

torch.manual_seed(2)
energy = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(energy.parameters(), 1e-3)

def langevin(x):
    for _ in range(3):
        x.requires_grad_(True)
        force = torch.autograd.grad(energy(x).sum(), x)[0]
        x = x - 0.05 * force + 0.02 * torch.randn_like(x)
    return x

chains = torch.rand(16, 2)
for step in range(8):
    chains = langevin(chains{before}){mark}
    loss = energy(torch.randn(16, 2)).mean() - energy(chains).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

PROGRAMS = {
    "chains of samples are kept with their history: sums save nothing": _ENERGY.format(before="", mark="  # <- BP306"),
    "right: the chains start without a history": _ENERGY.format(before=".detach()", mark=""),
    "a position moves on by a parameter": """
import torch

velocity = torch.nn.Parameter(torch.zeros(2))
opt = torch.optim.Adam([velocity], 1e-1)
place = torch.zeros(4, 2)
for goal in torch.randn(8, 4, 2):
    place = place + velocity  # <- BP306
    loss = (place - goal).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the way grows within a turn, and is walked once": """
import torch
from torch import nn

torch.manual_seed(2)
policy = nn.Linear(2, 2)
opt = torch.optim.Adam(policy.parameters(), 1e-3)
for turn in range(3):
    place, total = torch.zeros(4, 2), 0.0
    for step in range(6):
        place = place + 0.1 * policy(torch.randn(4, 2))
        total = total + (place - 1).square().mean()
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "right: a gradient is asked for at each step of an unrolled descent, which is walked at its end": """
import torch
from torch import nn

torch.manual_seed(2)
energy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(energy.parameters(), 1e-3)
for turn in range(3):
    x = torch.rand(16, 2, requires_grad=True)
    for _ in range(6):
        force = torch.autograd.grad(energy(x).square().sum(), x, create_graph=True)[0]
        x = x - 0.05 * force
    loss = (x - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a trainer keeps the state that it hands in": """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x, state):
        state = torch.tanh(self.inner(x) + state)
        return self.out(state), state

class Trainer:
    def __init__(self, cell):
        self.cell, self.state = cell, torch.zeros(4, 3)
        self.optimizer = torch.optim.SGD(cell.parameters(), lr=1e-3)

    def loss(self, x):
        guess, self.state = self.cell(x, self.state)  # <- BP306
        return guess.square().mean()

    def day(self, xs):
        self.state = torch.zeros(4, 3)
        self.optimizer.zero_grad()
        for x in xs:
            self.loss(x).backward(retain_graph=True)
        self.optimizer.step()

trainer = Trainer(Cell())
for day in torch.randn(3, 8, 4, 3):
    trainer.day(day)
""",
}
