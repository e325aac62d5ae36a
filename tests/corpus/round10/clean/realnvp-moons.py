import math

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, kept, changed, width=48):
        super().__init__()
        self.kept, self.changed = kept, changed
        self.net = nn.Sequential(nn.Linear(len(kept), width), nn.Tanh(), nn.Linear(width, 2 * len(changed)))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)
        self.limit = nn.Parameter(torch.zeros(len(changed)))

    def forward(self, x):
        raw, shift = self.net(x[:, self.kept]).chunk(2, dim=1)
        log_scale = self.limit.exp() * torch.tanh(raw)
        out = torch.empty_like(x)
        out[:, self.kept] = x[:, self.kept]
        out[:, self.changed] = x[:, self.changed] * log_scale.exp() + shift
        return out, log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(Coupling([k % 2], [1 - k % 2]) for k in range(layers))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total += log_det
        return total - 0.5 * x.square().sum(1) - math.log(2 * math.pi)


def moons(n):
    t = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x - 0.5, y - 0.25], 1) * 1.5 + 0.08 * torch.randn(n, 2)


torch.manual_seed(14)
flow = Flow(layers=6)
optimizer = torch.optim.AdamW(flow.parameters(), lr=5e-3, weight_decay=1e-5)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=160)
nll = []
for step in range(160):
    loss = -flow.log_prob(moons(128)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    nll.append(loss.detach())
nll = torch.stack(nll)
print("nll", nll[:10].mean().item(), "->", nll[-10:].mean().item())
