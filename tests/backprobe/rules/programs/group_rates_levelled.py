"""BP776 group-rates-levelled."""

PROGRAMS = {
    "a helper that sets one rate": """
import torch, torch.nn as nn
torch.manual_seed(0)
body, head = nn.Linear(8, 16), nn.Linear(16, 2)
opt = torch.optim.SGD([{"params": body.parameters(), "lr": 1e-4}, {"params": head.parameters(), "lr": 1e-1}], lr=1e-2)
x, y = torch.randn(32, 8), torch.randint(0, 2, (32,))
def adjust(epoch):
    factor = 0.5 ** (epoch // 2)
    for g in opt.param_groups:
        g["lr"] = 1e-2 * factor  # <- BP776
for epoch in range(6):
    adjust(epoch)
    opt.zero_grad()
    loss = nn.functional.cross_entropy(head(torch.relu(body(x))), y)
    loss.backward()
    opt.step()
""",
    "right: each group keeps its own": """
import torch, torch.nn as nn
torch.manual_seed(0)
body, head = nn.Linear(8, 16), nn.Linear(16, 2)
opt = torch.optim.SGD([{"params": body.parameters(), "lr": 1e-4}, {"params": head.parameters(), "lr": 1e-1}], lr=1e-2)
x, y = torch.randn(32, 8), torch.randint(0, 2, (32,))
def adjust(epoch):
    factor = 0.5 ** (epoch // 2)
    for g in opt.param_groups:
        g["lr"] = g.setdefault("base", g["lr"]) * factor
for epoch in range(6):
    adjust(epoch)
    opt.zero_grad()
    loss = nn.functional.cross_entropy(head(torch.relu(body(x))), y)
    loss.backward()
    opt.step()
""",
    "right: a search for a rate": """
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([{"params": body.parameters(), "lr": 1e-3}, {"params": head.parameters(), "lr": 1e-2}], lr=1e-3)
lrs, losses = [], []
for k in range(10):
    lr = 1e-5 * 10 ** (k / 3)
    for g in opt.param_groups:
        g["lr"] = lr
    x = torch.randn(16, 4)
    loss = (head(body(x).relu()) - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    lrs.append(lr)
    losses.append(loss.item())
print(lrs[losses.index(min(losses))])
""",
}
