import torch
import torch.nn as nn
import torch.nn.functional as F


class Importance:
    """Weights of examples by age: recent rows count more."""

    def __init__(self, half_life):
        self.half_life = half_life

    def __call__(self, age):
        weight = 0.5 ** (age / self.half_life)
        return weight / weight.sum()


torch.manual_seed(35)
rows = 120
x = torch.randn(rows, 7)
age = torch.arange(rows).float().flip(0)
drift = torch.linspace(-1, 1, rows)
y = drift * x[:, 0] + x[:, 1]
net = nn.Sequential(nn.Linear(7, 20), nn.GELU(), nn.Linear(20, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
importance = Importance(half_life=30.0)
for step in range(15):
    index = torch.randperm(rows)[:40]
    each = F.smooth_l1_loss(net(x[index]).squeeze(1), y[index], reduction="none")
    optimizer.zero_grad()
    each.backward(importance(age[index]))
    optimizer.step()
    if step % 5 == 0:
        print(step, each.detach().mean().item())
