"""BP602 graph-break-no-grad."""

PROGRAMS = {
    "a decorator without a call": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    @torch.no_grad  # <- BP602
    def features(self, x):
        return self.trunk(x)

    def forward(self, x):
        return self.head(self.features(x))

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(5, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the whole loss under no_grad": """
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.no_grad():  # <- BP602
    loss = net(torch.randn(5, 3)).pow(2).mean()
loss.backward()
""",
    "leaves under set_grad_enabled": """
import torch
scale = torch.ones(3, requires_grad=True)
shift = torch.zeros(3, requires_grad=True)
opt = torch.optim.SGD([scale, shift], lr=0.1)
for x in torch.randn(3, 5, 3):
    with torch.set_grad_enabled(False):  # <- BP602
        y = x * scale
    loss = (y + shift).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a validation loop beside the training": """
import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(5, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        print(net(torch.randn(5, 3)).mean())
""",
}
