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
}
