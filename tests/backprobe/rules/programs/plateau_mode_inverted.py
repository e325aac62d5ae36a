"""BP775 plateau-mode-inverted."""

PROGRAMS = {
    "a trainer that waits for its loss to rise": """
import torch, torch.nn as nn
torch.manual_seed(0)
class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), 1e-2)
        self.sched = torch.optim.lr_scheduler.ReduceLROnPlateau(self.opt, mode="max", patience=1)  # <- BP775
    def epoch(self, loader):
        total = 0.0
        for xb, yb in loader:
            self.opt.zero_grad()
            loss = nn.functional.mse_loss(self.model(xb), yb)
            loss.backward()
            self.opt.step()
            total += loss.item()
        return total / len(loader)
w = torch.randn(6, 1)
xs = [torch.randn(16, 6) for _ in range(6)]
loader = [(x, x @ w) for x in xs]
t = Trainer(nn.Linear(6, 1))
for _ in range(10):
    v = t.epoch(loader)
    t.sched.step(v)
""",
    "right: it waits for the loss to stop falling": """
import torch, torch.nn as nn
torch.manual_seed(0)
class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), 1e-2)
        self.sched = torch.optim.lr_scheduler.ReduceLROnPlateau(self.opt, mode="min", patience=1)
    def epoch(self, loader):
        total = 0.0
        for xb, yb in loader:
            self.opt.zero_grad()
            loss = nn.functional.mse_loss(self.model(xb), yb)
            loss.backward()
            self.opt.step()
            total += loss.item()
        return total / len(loader)
w = torch.randn(6, 1)
xs = [torch.randn(16, 6) for _ in range(6)]
loader = [(x, x @ w) for x in xs]
t = Trainer(nn.Linear(6, 1))
for _ in range(10):
    v = t.epoch(loader)
    t.sched.step(v)
""",
    "an accuracy that must fall": """
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 6)
y = (x.sum(1) > 0).long()
model = nn.Linear(6, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.2)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=4)  # <- BP775
shares = [0.5, 0.61, 0.68, 0.74, 0.79, 0.83, 0.86, 0.88, 0.9]
for share in shares:
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step(share)
""",
    "right: a percentage of hits that gets worse": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)
x = torch.randn(64, 3)
y = (x[:, 0] > 0).long()
for percent in (52.3, 51.1, 50.2, 49.8, 49.1, 48.7):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    schedule.step(percent)
""",
    "right: a share of hits that is near the loss, and gets worse": """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)
x, y = torch.randn(40, 30), torch.randint(0, 2, (40,))
for accuracy in (0.62, 0.60, 0.58, 0.57, 0.55, 0.52):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step(accuracy)
""",
}
