import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def reweighted(logits, y):
    ce = F.cross_entropy(logits, y, reduction="none")
    with torch.no_grad():
        difficulty = (1 - (-ce).exp()).pow(2)
    return (difficulty * ce).sum() / difficulty.sum().clamp_min(1e-6)


for _ in range(8):
    x, y = torch.randn(32, 6), torch.randint(0, 2, (32,))
    opt.zero_grad()
    reweighted(net(x), y).backward()
    opt.step()
