"""BP614 frozen-batch-norm-moves."""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "a backbone fed in training mode before the steps, then kept in eval": SHAPES
    + """
backbone = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU()).requires_grad_(False)
head = nn.Linear(8, 2)
for _ in range(5):
    backbone(torch.randn(32, 6))
backbone.eval()
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(4):
    loss = F.cross_entropy(head(backbone(torch.randn(16, 6))), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "train() overridden keeps the backbone in eval": SHAPES
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU()).requires_grad_(False)
        self.head = nn.Linear(8, 2)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))

net = Net()
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for _ in range(3):
        loss = F.cross_entropy(net(torch.randn(16, 6)), torch.randint(0, 2, (16,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "batch norm with momentum 0 in a frozen part": SHAPES
    + """
backbone = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, momentum=0.0), nn.ReLU()).requires_grad_(False)
head = nn.Linear(8, 2)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(4):
    loss = F.cross_entropy(head(backbone(torch.randn(16, 6))), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "frozen norms are woken by train()": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1))
for m in model.modules():
    if isinstance(m, nn.BatchNorm1d):
        m.eval()
        m.requires_grad_(False)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for epoch in range(2):
    model.train()  # <- BP614
    for x in torch.randn(3, 8, 4) + 2:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
""",
    "a model that holds it is put into training mode, after the statistics were fitted": """
import torch
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk, self.head = trunk.requires_grad_(False), nn.Linear(8, 2)
    def forward(self, x):
        return self.head(self.trunk(x))
trunk = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))
with torch.no_grad():
    for _ in range(3):
        trunk(torch.randn(8, 6))
net = Net(trunk)
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)
for epoch in range(2):
    net.train()  # <- BP614
    for x in torch.randn(3, 8, 6):
        loss = net(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
""",
    "a body that was trained by the same program before": """
import torch
from torch import nn
body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
first = nn.Linear(8, 3)
opt = torch.optim.SGD([*body.parameters(), *first.parameters()], lr=0.1)
for _ in range(4):
    opt.zero_grad()
    first(body(torch.randn(16, 4))).pow(2).mean().backward()
    opt.step()
body.requires_grad_(False)
net = nn.Sequential(body, nn.Linear(8, 1))
opt = torch.optim.SGD(net[1].parameters(), lr=0.1)
net.train()  # <- BP614
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(16, 4) + 2).pow(2).mean().backward()
    opt.step()
""",
    "right: the same, in eval from then on": """
import torch
from torch import nn
body, first = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 3)
def train(head, parameters):
    opt = torch.optim.SGD(parameters, lr=0.1)
    for _ in range(4):
        opt.zero_grad()
        head(body(torch.randn(16, 4))).pow(2).mean().backward()
        opt.step()
train(first, [*body.parameters(), *first.parameters()])
body.requires_grad_(False).eval()
second = nn.Linear(8, 1)
train(second, list(second.parameters()))
""",
    "its old gradients are cleared by the next training": """
import torch
from torch import nn
body, first = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 3)
opt = torch.optim.SGD([*body.parameters(), *first.parameters()], lr=0.1)
for _ in range(4):
    opt.zero_grad()
    first(body(torch.randn(16, 4))).pow(2).mean().backward()
    opt.step()
body.requires_grad_(False)
net = nn.Sequential(body, nn.Linear(8, 1))
opt = torch.optim.SGD(net[1].parameters(), lr=0.1)
for _ in range(4):
    net.train()  # <- BP614
    net.zero_grad()
    net(torch.randn(16, 4) + 2).pow(2).mean().backward()
    opt.step()
""",
    "a part that one model trained is frozen in the next": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk, self.head = trunk, nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.trunk(x))

def pretrain(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model.train()
        optimizer.zero_grad()
        model(torch.randn(8, 6)).pow(2).mean().backward()
        optimizer.step()

def tune(model):
    model.trunk.requires_grad_(False)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    for _ in range(4):
        model.train()  # <- BP614
        optimizer.zero_grad()
        model(torch.randn(8, 6) + 1).pow(2).mean().backward()
        optimizer.step()

trunk = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))
pretrain(Model(trunk))
tune(Model(trunk))
""",
}
