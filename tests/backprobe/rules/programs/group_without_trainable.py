"""Programs for BP759: groups of an optimizer in which nothing requires grad."""

PROGRAMS = {
    "the frozen backbone has a rate of its own": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 1)
        for parameter in self.backbone.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        return self.head(self.backbone(x))


net = Net()
groups = [{"params": net.backbone.parameters(), "lr": 1e-4}, {"params": net.head.parameters()}]
optimizer = torch.optim.SGD(groups, lr=1e-2)  # <- BP759
for step in range(3):
    optimizer.zero_grad()
    net(torch.randn(4, 4)).pow(2).mean().backward()
    optimizer.step()
""",
    "right: a method that this run does not reach thaws it": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)
        self.body.requires_grad_(False)

    def forward(self, x):
        return self.head(self.body(x))

    def wake(self):
        self.body.requires_grad_(True)


net = Net()
optimizer = torch.optim.SGD([{"params": net.body.parameters(), "lr": 1e-4}, {"params": net.head.parameters()}], lr=1e-2)
for step in range(30):
    optimizer.zero_grad()
    net(torch.randn(4, 4)).pow(2).mean().backward()
    optimizer.step()
    if step == 100:
        net.wake()
""",
    "right: one group of everything": """
import torch
from torch import nn

body, head = nn.Linear(4, 4), nn.Linear(4, 1)
body.requires_grad_(False)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    head(body(torch.randn(4, 4))).pow(2).mean().backward()
    optimizer.step()
""",
    "right: decay by kind, with frozen ones among them": """
import torch
from torch import nn

body, head = nn.Linear(4, 4), nn.Linear(4, 1)
body.requires_grad_(False)
weights, biases = [body.weight, head.weight], [body.bias, head.bias]
optimizer = torch.optim.SGD([{"params": weights, "weight_decay": 0.1}, {"params": biases}], lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    head(body(torch.randn(4, 4))).pow(2).mean().backward()
    optimizer.step()
""",
}
