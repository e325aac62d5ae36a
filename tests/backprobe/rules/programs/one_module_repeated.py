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
}
