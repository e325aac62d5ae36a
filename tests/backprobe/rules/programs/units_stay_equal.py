"""BP224 units-stay-equal."""

PROGRAMS = {
    "constant init of two layers": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
for p in net.parameters():
    nn.init.constant_(p, 0.1)  # <- BP224
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(6, 16, 4):
    optimizer.zero_grad()
    (net(x) - x[:, :1] * x[:, 1:2]).pow(2).mean().backward()
    optimizer.step()
""",
    "ones init of hidden layer": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.out = nn.Linear(8, 2)
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, nn.Linear):
            m.weight.data.fill_(0.5)  # <- BP224
            m.bias.data.zero_()

    def forward(self, x):
        return self.out(torch.sigmoid(self.hidden(x)))

net = MLP()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for x in torch.randn(6, 16, 4):
    loss = F.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "zero weights and a constant behind, convolutions": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.conv2 = nn.Conv2d(4, 2, 3)
        for conv in (self.conv1, self.conv2):
            conv.weight.data.fill_(0.01)  # <- BP224
            conv.bias.data.zero_()

    def forward(self, x):
        return self.conv2(torch.relu(self.conv1(x))).mean((2, 3))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.rand(4, 8, 1, 8, 8):
    loss = F.cross_entropy(net(x), (x.sum((1, 2, 3)) > 32).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "zero init of last layer and of biases, ones of norm": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 1))
nn.init.zeros_(net[3].weight)
nn.init.zeros_(net[3].bias)
nn.init.ones_(net[1].weight)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(6, 16, 4):
    optimizer.zero_grad()
    (net(x) - x[:, :1]).pow(2).mean().backward()
    optimizer.step()
""",
    "constant init of a linear regression and of one unit": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
nn.init.constant_(net.weight, 0.1)
gate = nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([*net.parameters(), gate], lr=0.1)
for x in torch.randn(6, 16, 4):
    optimizer.zero_grad()
    (net(x * gate) - x[:, :1]).pow(2).mean().backward()
    optimizer.step()
""",
    "two heads begin with zero, and norms with one": """
import torch
from torch import nn

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh())
        self.mean, self.scale = nn.Linear(6, 6), nn.Linear(6, 6)
        for head in (self.mean, self.scale):
            nn.init.zeros_(head.weight)
            nn.init.ones_(head.bias)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.scale(h)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 16, 4):
    mean, scale = net(x)
    loss = ((mean - x[:, :1]) ** 2 + (scale - x[:, 1:2]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
