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
    "a weight of a loss through math, and its parameter is added": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

a, b = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
opt = torch.optim.Adam([*net.parameters(), *other.parameters(), a, b], lr=0.01)
for _ in range(4):
    loss = math.exp(-a) * F.mse_loss(net(x), y) + F.mse_loss(other(x), z) * torch.exp(-b) + a + b  # <- BP603

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "a weight that a forward method takes of its own parameter": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.sigma = nn.Linear(4, 1), nn.Parameter(torch.ones(1))
    def forward(self, x, y):
        weight = 1 / self.sigma.pow(2).item()  # <- BP603
        return weight * F.mse_loss(self.net(x), y) + torch.log(self.sigma).sum()
task = Task()
opt = torch.optim.SGD(task.parameters(), lr=0.01)
for _ in range(4):
    loss = task(x, y)

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "a gate goes in as a number, and is penalised": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

gate = torch.zeros(1, requires_grad=True)
opt = torch.optim.SGD([*net.parameters(), gate], lr=0.01)
for _ in range(4):
    fit = F.mse_loss(net(x), y)
    loss = fit * float(torch.sigmoid(gate)) + 0.1 * gate.abs().sum()  # <- BP603

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "weights stay tensors, and are printed as numbers": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

s = nn.Parameter(torch.zeros(2))
opt = torch.optim.SGD([*net.parameters(), *other.parameters(), s], lr=0.01)
for _ in range(4):
    parts = F.mse_loss(net(x), y), F.mse_loss(other(x), z)
    loss = sum(torch.exp(-a) * part + a for a, part in zip(s, parts))
    print([math.exp(-a) for a in s], float(s[0]))

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "a temperature has a loss of its own": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

log_alpha = nn.Parameter(torch.zeros(1))
opt = torch.optim.SGD([*net.parameters(), log_alpha], lr=0.01)
for _ in range(4):
    size = net(x).pow(2).mean()
    alpha = log_alpha.exp().item()
    loss = alpha * size - (log_alpha * (size.detach() - 1)).sum()

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "a temperature has a loss of its own, through exp": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

log_alpha = nn.Parameter(torch.zeros(1))
opt = torch.optim.SGD([*net.parameters(), log_alpha], lr=0.01)
for _ in range(4):
    size = net(x).pow(2).mean()
    loss = math.exp(log_alpha) * size - (log_alpha.exp() * (size.detach() - 1)).sum()

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "a scale is trained by the fit, and divides it as a number": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

scale = nn.Parameter(torch.ones(1))
opt = torch.optim.SGD([*net.parameters(), scale], lr=0.01)
for _ in range(4):
    loss = F.mse_loss(net(x) * scale, y) / max(float(scale.abs()), 1.0) + 0.1 * scale.pow(2).sum()

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "losses are weighted by their own values": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

opt = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)
for _ in range(4):
    first, second = F.mse_loss(net(x), y), F.mse_loss(other(x), z)
    loss = math.exp(-first.item()) * first + math.exp(-second.item()) * second

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "a loss is divided by the norm of weights": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

opt = torch.optim.SGD([*net.parameters()], lr=0.01)
for _ in range(4):
    loss = F.mse_loss(net(x), y) / (1 + net.weight.norm().item()) + 0.1 * net.weight.norm()

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "a weighted loss is shown": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

s = nn.Parameter(torch.zeros(()))
opt = torch.optim.SGD([*net.parameters(), s], lr=0.01)
for _ in range(4):
    fit = F.mse_loss(net(x), y)
    loss = torch.exp(-s) * fit + s
    shown = math.exp(-s) * fit.detach()

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "a name of a number is given another one": """
import math
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(40, 4)
y, z = x.sum(1, keepdim=True), x[:, :1]
net, other = nn.Linear(4, 1), nn.Linear(4, 1)

s = nn.Parameter(torch.zeros(()))
opt = torch.optim.SGD([*net.parameters(), s], lr=0.01)
for _ in range(4):
    w = math.exp(-s)
    print(w)
    w = 0.5
    loss = w * F.mse_loss(net(x), y) + s.pow(2)

    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
""",
    "layers that are attributes of another object, and a term of it that becomes a number": """
import torch
from torch import nn
from types import SimpleNamespace

torch.manual_seed(0)
job = SimpleNamespace()
job.first, job.last = nn.Sequential(nn.Linear(6, 4), nn.Tanh()), nn.Linear(4, 6)

class Site:
    def __init__(self, net, judge):
        self.net, self.judge = net, judge
        self.optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

site = Site(nn.Sequential(job.first, job.last), nn.Linear(4, 1).requires_grad_(False))
for _ in range(5):
    x = torch.randn(8, 6)
    z = job.first(x)
    wrong = (job.last(z) - x).abs().mean()
    job.fooled = nn.functional.binary_cross_entropy_with_logits(site.judge(job.first(x + 0.3)), torch.ones(8, 1))
    job.fooled = job.fooled.item()  # <- BP603
    loss = wrong + 0.1 * job.fooled
    site.optimizer.zero_grad()
    loss.backward()
    site.optimizer.step()
""",
    "right: the number of such a term has a name of its own": """
import torch
from torch import nn
from types import SimpleNamespace

torch.manual_seed(0)
job = SimpleNamespace()
job.first, job.last = nn.Sequential(nn.Linear(6, 4), nn.Tanh()), nn.Linear(4, 6)

class Site:
    def __init__(self, net, judge):
        self.net, self.judge = net, judge
        self.optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

site = Site(nn.Sequential(job.first, job.last), nn.Linear(4, 1).requires_grad_(False))
for _ in range(5):
    x = torch.randn(8, 6)
    z = job.first(x)
    wrong = (job.last(z) - x).abs().mean()
    job.fooled = nn.functional.binary_cross_entropy_with_logits(site.judge(job.first(x + 0.3)), torch.ones(8, 1))
    shown = job.fooled.item()
    loss = wrong + 0.1 * job.fooled
    site.optimizer.zero_grad()
    loss.backward()
    site.optimizer.step()
""",
}
