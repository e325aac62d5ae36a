"""BP606 graph-break-non-differentiable."""

PROGRAMS = {
    "a loss of counts raises": """
import torch
from torch import nn

net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
wrong = (net(x).argmax(1) != y).float()  # <- BP606
loss = wrong.mean()
loss.backward()
""",
    "a cast to integers": """
import torch
from torch import nn

step, layer = nn.Parameter(torch.rand(5) * 3), nn.Linear(5, 1)
opt = torch.optim.SGD([step, *layer.parameters()], lr=0.1)
for _ in range(3):
    level = step.to(torch.long)  # <- BP606
    loss = layer(level.float()).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the places of a sort": """
import torch
from torch import nn

rank, layer = nn.Linear(5, 5), nn.Linear(5, 1)
opt = torch.optim.SGD([*rank.parameters(), *layer.parameters()], lr=0.1)
for x in torch.randn(3, 5):
    order = rank(x).argsort()  # <- BP606
    loss = layer(x[order]).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a mask of what is taken further": """
import torch
from torch import nn

net = nn.Linear(5, 5)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 5):
    out = net(x)
    loss = out[out > 0].pow(2).sum() + out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
