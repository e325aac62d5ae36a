"""BP507 vanishing-gradient."""

RECURRENCE = """
import torch
from torch import nn

torch.manual_seed(0)
cell = nn.RNNCell(2, 16)
nn.init.orthogonal_(cell.weight_hh, gain={gain})
first, head = nn.Linear(5, 16), nn.Linear(16, 3)
optimizer = torch.optim.SGD([*first.parameters(), *cell.parameters(), *head.parameters()], lr=0.05)
for _ in range(4):
    start = torch.randn(8, 5)
    h = torch.tanh(first(start))
    for frame in torch.randn(40, 8, 2):
        h = cell(frame, h){mark}
    loss = nn.functional.cross_entropy(head(h), (start[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "a recurrence that forgets, and one activation before it": RECURRENCE.format(gain=0.5, mark="  # <- BP507"),
    "a recurrence that keeps": RECURRENCE.format(gain=1.0, mark=""),
    "two nets of different scale in one loss do not vanish": SHAPES
    + """
def net():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))

big, small = net(), net()
opt = torch.optim.Adam([*big.parameters(), *small.parameters()])
for _ in range(5):
    x = torch.randn(16, 4)
    loss = (big(x) - 1).pow(2).mean() + 1e-7 * (small(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "residual blocks with small layer scales do not vanish": SHAPES
    + """
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.Linear(d, d), nn.Linear(d, d)
        self.scale = nn.Parameter(1e-6 * torch.ones(d))

    def forward(self, x):
        return x + self.scale * self.b(F.gelu(self.a(x)))

net = nn.Sequential(*(Block(8) for _ in range(4)), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(5):
    opt.zero_grad()
    (net(torch.randn(16, 8)) - 1).pow(2).mean().backward()
    opt.step()
""",
    "a decoder of detached codes, and a tiny penalty on the encoder": SHAPES
    + """
enc = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
dec = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 6))
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for _ in range(5):
    x = torch.randn(16, 6)
    z = enc(x)
    loss = F.mse_loss(dec(z.detach()), x) + 1e-8 * z.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an activation that a table gives by the name in a setting": """
import torch
from torch import nn

torch.manual_seed(0)
KINDS = {"relu": nn.ReLU, "logistic": nn.Sigmoid}

def build(depth, kind="logistic"):  # <- BP507
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(16, 16), KINDS[kind]()]
    return nn.Sequential(*layers, nn.Linear(16, 1))

net = build(9)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.randn(5, 16, 16):
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "an activation that is handed on as a class": """
import torch
from torch import nn

torch.manual_seed(0)

def build(depth, kind):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(16, 16), kind()]
    return nn.Sequential(*layers, nn.Linear(16, 1))

net = build(9, nn.Sigmoid)  # <- BP507
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.randn(5, 16, 16):
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "weights that start too small": """
import torch
from torch import nn

torch.manual_seed(0)
layers = []
for _ in range(9):
    layers += [nn.Linear(16, 16), nn.ReLU()]
net = nn.Sequential(*layers, nn.Linear(16, 1))
for layer in net[::2]:
    nn.init.normal_(layer.weight, std=0.03)  # <- BP507
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.randn(5, 16, 16):
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
