"""Programs for BP758: the options of an optimizer written as attributes."""

PROGRAMS = {
    "a trainer that decays the rate": """
import torch
from torch import nn


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def fit(self, steps):
        for step in range(steps):
            self.optimizer.zero_grad()
            self.model(torch.randn(4, 3)).pow(2).mean().backward()
            self.optimizer.step()
            if step % 2:
                self.optimizer.lr = 0.01 * 0.5**step  # <- BP758


Trainer(nn.Linear(3, 1)).fit(4)
""",
    "a name that another framework has": """
import torch
from torch import nn

net = nn.Linear(3, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
for step in range(4):
    sgd.learning_rate = 0.1 * 0.5**step  # <- BP758
    sgd.zero_grad()
    net(torch.randn(4, 3)).pow(2).mean().backward()
    sgd.step()
""",
    "right: an optimizer of the program's own reads it": """
import torch
from torch import nn


class Plain(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {})
        self.lr = lr

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p -= self.lr * p.grad


net = nn.Linear(3, 1)
plain = Plain(net.parameters(), lr=0.1)
for step in range(4):
    plain.lr = 0.1 / (step + 1)
    plain.zero_grad()
    net(torch.randn(4, 3)).pow(2).mean().backward()
    plain.step()
""",
    "right: a configuration has such a field": """
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    lr: float = 0.1


settings = Settings()
settings.lr = 0.05
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=settings.lr)
for step in range(3):
    optimizer.zero_grad()
    net(torch.randn(4, 3)).pow(2).mean().backward()
    optimizer.step()
""",
}
