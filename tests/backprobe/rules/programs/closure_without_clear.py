"""BP267 closure-without-clear."""

PROGRAMS = {
    "a solver in a class": """
import torch
from torch import nn

class Solver:
    def __init__(self, field):
        self.field = field
        self.optimizer = torch.optim.LBFGS(field.parameters(), lr=0.1, max_iter=5)
        self.points = torch.linspace(0, 1, 20)[:, None]

    def evaluate(self):
        u = self.field(self.points)
        loss = (u - self.points.sin()).pow(2).mean()
        loss.backward()  # <- BP267
        return loss

    def solve(self, rounds):
        for _ in range(rounds):
            self.optimizer.zero_grad()
            self.optimizer.step(self.evaluate)

Solver(nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1))).solve(3)
""",
    "cleared in the closure": """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
x = torch.randn(16, 3)

def closure():
    model.zero_grad()
    loss = (model(x) - x[:, :1]).pow(2).mean()
    loss.backward()
    return loss

for _ in range(3):
    optimizer.step(closure)
""",
    "cleared in the closure, which sums over parts": """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
x = torch.randn(16, 3)

def closure():
    optimizer.zero_grad()
    total = 0.0
    for part in x.split(4):
        loss = (model(part) - part[:, :1]).pow(2).sum()
        loss.backward()
        total += loss.item()
    return total

for _ in range(3):
    optimizer.step(closure)
""",
    "one evaluation to a step": """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)
for x in torch.randn(4, 16, 3):
    def closure():
        loss = (model(x) - x[:, :1]).pow(2).mean()
        loss.backward()
        return loss
    optimizer.zero_grad()
    optimizer.step(closure)
""",
}
