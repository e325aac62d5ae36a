"""BP778 average-weights-swapped."""

PROGRAMS = {
    "decay and rate swapped in a class": """
import torch, torch.nn as nn, copy
torch.manual_seed(0)
class EMA:
    def __init__(self, model, decay=0.99):
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay
    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.mul_(1 - self.decay).add_(p, alpha=self.decay)  # <- BP778
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
ema = EMA(net)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.randn(64, 5), torch.randn(64, 1)
for _ in range(12):
    opt.zero_grad()
    (net(x) - y).pow(2).mean().backward()
    opt.step()
    ema.update(net)
with torch.no_grad():
    print((ema.shadow(x) - y).pow(2).mean().item())
""",
    "the rate of a target network on the wrong side, through data": """
import torch, torch.nn as nn, copy
torch.manual_seed(0)
q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
q_target = copy.deepcopy(q)
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
tau = 0.005
for it in range(15):
    s, a, r, s2 = torch.randn(16, 4), torch.randint(0, 2, (16, 1)), torch.randn(16), torch.randn(16, 4)
    with torch.no_grad():
        target = r + 0.99 * q_target(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(q(s).gather(1, a).squeeze(1), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for tp, p in zip(q_target.parameters(), q.parameters()):
            tp.data.copy_(tau * tp.data + (1 - tau) * p.data)  # <- BP778
""",
    "right: a class": """
import torch, torch.nn as nn, copy
torch.manual_seed(0)
class EMA:
    def __init__(self, model, decay=0.99):
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay
    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
ema = EMA(net)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.randn(64, 5), torch.randn(64, 1)
for _ in range(12):
    opt.zero_grad()
    (net(x) - y).pow(2).mean().backward()
    opt.step()
    ema.update(net)
with torch.no_grad():
    print((ema.shadow(x) - y).pow(2).mean().item())
""",
    "right: a target network": """
import torch, torch.nn as nn, copy
torch.manual_seed(0)
q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
q_target = copy.deepcopy(q)
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
tau = 0.005
for it in range(15):
    s, a, r, s2 = torch.randn(16, 4), torch.randint(0, 2, (16, 1)), torch.randn(16), torch.randn(16, 4)
    with torch.no_grad():
        target = r + 0.99 * q_target(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(q(s).gather(1, a).squeeze(1), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for tp, p in zip(q_target.parameters(), q.parameters()):
            tp.data.copy_((1 - tau) * tp.data + tau * p.data)
""",
    "an average that is pushed away": """
import copy
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
mean = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(10, 16, 4):
    opt.zero_grad()
    (net(x) - 1).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        for old, new in zip(mean.parameters(), net.parameters()):
            old.add_(0.1 * (old - new))  # <- BP778
""",
}
