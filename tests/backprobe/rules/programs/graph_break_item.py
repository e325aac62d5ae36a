"""BP603 graph-break-item."""

PROGRAMS = {
    "a list of numbers is summed up again": """
import torch
from torch import nn

net, bias = nn.Linear(3, 1), nn.Parameter(torch.zeros(1))
opt = torch.optim.SGD([*net.parameters(), bias], lr=0.1)
for _ in range(3):
    losses = []
    for x in torch.randn(4, 3):
        losses.append(net(x).pow(2).item())  # <- BP603
    loss = torch.tensor(losses).mean() + bias.pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "math takes the number itself": """
import math

import torch
from torch import nn

net, width = nn.Linear(3, 1), nn.Parameter(torch.tensor(0.3))
opt = torch.optim.SGD([*net.parameters(), width], lr=0.1)
for _ in range(3):
    factor = math.exp(width)  # <- BP603
    loss = net(torch.randn(4, 3)).pow(2).mean() * factor
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a number chooses how often to run": """
import torch
from torch import nn

net, depth = nn.Linear(3, 3), nn.Parameter(torch.tensor(2.0))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    h = torch.randn(4, 3)
    for _ in range(int(depth)):
        h = net(h)
    loss = h.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
