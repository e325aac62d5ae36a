"""BP502 nonfinite-gradient."""

PROGRAMS = {
    "anomaly mode raises": """
import torch
w = torch.zeros(3, requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    roots = w.sqrt()  # <- BP502
    (roots * 0).sum().backward()
""",
    "a distance of equal points, in a module": """
import torch
from torch import nn

class Contrastive(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, a, b):
        gap = self.net(a) - self.net(b)
        distance = gap.norm(dim=1) + gap.pow(2).sum(1).sqrt()  # <- BP502
        return distance.mean()

model = Contrastive()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(3, 4)
for _ in range(2):
    loss = model(x, x)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a scaler leaves the steps out": """
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126)
for _ in range(3):
    loss = net(torch.randn(8, 4) * 1e3).pow(2).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
""",
    "states that cannot be reached, by a constant of the module": """
import torch
from torch import nn

NEVER = float("-inf")  # <- BP502

def forward_sum(scores):
    alpha = torch.cat([scores[0, :1], scores.new_full((3,), NEVER)])
    for frame in scores[1:]:
        moved = torch.cat([alpha.new_full((1,), NEVER), alpha[:-1]])
        alpha = torch.logaddexp(alpha, moved) + frame
    return torch.logsumexp(alpha[:2], 0)

net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 3):
    loss = -forward_sum(net(x).log_softmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a mask by a constant of the class": """
import torch
from torch import nn

class Pooled(nn.Module):
    LOW = float("-inf")  # <- BP502

    def __init__(self):
        super().__init__()
        self.score, self.heat = nn.Linear(4, 1), nn.Parameter(torch.ones(()))

    def forward(self, x, seen):
        score = self.score(x).squeeze(-1).masked_fill(~seen, self.LOW)
        weight = (score * self.heat).softmax(1)
        return (weight * x[..., 0]).sum(1)

net = Pooled()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
seen = torch.tensor([[True, True, False], [True, False, False]])
for x in torch.randn(3, 2, 3, 4):
    loss = net(x, seen).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a finite number for what cannot be": """
import torch
from torch import nn

NEVER = -1e9

def forward_sum(scores):
    alpha = torch.cat([scores[0, :1], scores.new_full((3,), NEVER)])
    for frame in scores[1:]:
        moved = torch.cat([alpha.new_full((1,), NEVER), alpha[:-1]])
        alpha = torch.logaddexp(alpha, moved) + frame
    return torch.logsumexp(alpha[:2], 0)

net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 3):
    loss = -forward_sum(net(x).log_softmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a root that gives no number beside a mask by a constant": """
import torch
from torch import nn

LOW = float("-inf")
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
open_ = torch.tensor([[True, True, False]])
for x in torch.randn(3, 8, 4):
    score = net(x).masked_fill(~open_, LOW).softmax(1)
    gap = (score[:, 2] * 0).sum().sqrt()  # <- BP502
    loss = score[:, 0].mean() + gap
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
