"""BP310 stale-forward."""

PROGRAMS = {
    "one of two leaves is used before the loop": """
import torch
scale = torch.ones(3, requires_grad=True)
head = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([scale, head], lr=0.1)
table = torch.sin(torch.arange(3.0) * scale)  # <- BP310
for x in torch.ones(5, 3):
    loss = (x + table + head).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
""",
    "a loss that a trainer keeps": """
import torch
from torch import nn
class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loss = self.net(torch.randn(8, 3)).mean()  # <- BP310
    def step(self):
        self.optimizer.zero_grad()
        self.loss.backward(retain_graph=True)
        self.optimizer.step()
trainer = Trainer()
for _ in range(5):
    trainer.step()
""",
    "features that two heads share, each step anew": """
import torch
from torch import nn
body, one, two = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.1)
for x in torch.randn(4, 8, 4):
    features = torch.tanh(body(x))
    optimizer.zero_grad()
    one(features).pow(2).mean().backward(retain_graph=True)
    two(features).pow(2).mean().backward()
    optimizer.step()
""",
}
