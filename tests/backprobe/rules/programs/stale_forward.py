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
    "each output's own gradient, without a step in between": """
import torch
from torch import nn
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(torch.randn(6, 4))
norms = []
for column in range(3):
    opt.zero_grad()
    out[:, column].sum().backward(retain_graph=True)
    norms.append(float(net.weight.grad.norm()))
opt.step()
""",
    "an old loss is looked at beside each step": """
import torch
from torch import nn
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
first = net(torch.ones(6, 4)).pow(2).mean()
for x in torch.randn(4, 6, 4):
    opt.zero_grad()
    (old,) = torch.autograd.grad(first, net.bias, retain_graph=True)
    net(x).pow(2).mean().backward()
    print(float((old * net.bias.grad).sum()))
    opt.step()
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
