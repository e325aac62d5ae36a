"""BP506 divergence."""

PROGRAMS = {
    "in a class, to infinity": """
import torch
from torch import nn

class Fit:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.opt = torch.optim.SGD(  # a comment
            self.model.parameters(),
            lr=40.0,  # <- BP506
        )

    def run(self, x, y):
        for _ in range(30):
            loss = nn.functional.mse_loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

Fit().run(torch.randn(40, 3), torch.randn(40, 1))
""",
    "it comes back": """
import torch

w = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD([w], lr=1e-9)
for scale in (1, 10, 100, 1000, 10000, 1, 1):
    loss = (scale * w).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a start at zero proves no growth": """
import torch

w = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD([w], lr=1e-9)
for scale in (0, 0, 1, 2, 4, 8, 16):
    loss = (scale * w).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
