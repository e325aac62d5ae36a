"""BP752 one-module-repeated."""

PROGRAMS = {
    "list times n": """
import torch
from torch import nn

torch.manual_seed(0)
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(6, 6), nn.Tanh()] * 4)  # <- BP752
        self.out = nn.Linear(6, 1)

    def forward(self, x):
        return self.out(self.layers(x))

net = Deep()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "same layer by default in ModuleList": """
import torch
from torch import nn

torch.manual_seed(0)
class Stack(nn.Module):
    def __init__(self, block, depth):
        super().__init__()
        self.blocks = nn.ModuleList([block for _ in range(depth)])  # <- BP752

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x

net = Stack(nn.Sequential(nn.Linear(6, 6), nn.GELU()), 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a default argument is one layer for all blocks": """
import torch
from torch import nn

torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, act=nn.PReLU()):  # <- BP752
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.act = act

    def forward(self, x):
        return x + self.act(self.linear(x))

net = nn.Sequential(Unit(), Unit(), Unit())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a default by keyword alone": """
import torch
from torch import nn

torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, size=6, *, act=nn.LayerNorm(6)):  # <- BP752
        super().__init__()
        self.linear, self.act = nn.Linear(size, size), act

    def forward(self, x):
        return x + self.act(self.linear(x))

net = nn.Sequential(*[Unit(6) for _ in range(3)])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a default has weights": """
import torch
from torch import nn

torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, act: nn.Module = nn.Sequential(nn.Linear(6, 6), nn.Tanh())):  # <- BP752
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.act = act

    def forward(self, x):
        return x + self.act(self.linear(x))

net = nn.Sequential(Unit(), nn.Tanh(), Unit())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a default without weights": """
import torch
from torch import nn

torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, act=nn.ReLU()):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.act = act

    def forward(self, x):
        return x + self.act(self.linear(x))

net = nn.Sequential(Unit(), Unit(), Unit())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a default that is built inside": """
import torch
from torch import nn

torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, act=None):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.act = nn.PReLU() if act is None else act

    def forward(self, x):
        return x + self.act(self.linear(x))

net = nn.Sequential(Unit(), Unit(), Unit())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a default class": """
import torch
from torch import nn

torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, act=nn.PReLU):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.act = act()

    def forward(self, x):
        return x + self.act(self.linear(x))

net = nn.Sequential(Unit(), Unit(), Unit())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "a default that each call replaces": """
import torch
from torch import nn

torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, act=nn.PReLU()):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.act = act

    def forward(self, x):
        return x + self.act(self.linear(x))

net = nn.Sequential(Unit(nn.PReLU()), Unit(act=nn.PReLU()))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
    "one object with its default": """
import torch
from torch import nn

torch.manual_seed(0)
class Unit(nn.Module):
    def __init__(self, act=nn.PReLU()):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.act = act

    def forward(self, x):
        return x + self.act(self.linear(x))

net = nn.Sequential(Unit())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 6):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
""",
}
