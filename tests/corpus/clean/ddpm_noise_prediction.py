import copy

import torch
from torch import nn

torch.manual_seed(0)
steps = 20
betas = torch.linspace(1e-3, 0.2, steps)
kept = torch.cumprod(1 - betas, 0)
model = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 2))
ema = copy.deepcopy(model).eval()
for p in ema.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(6):
    x0 = torch.randn(32, 2) * 0.3 + 1
    t = torch.randint(0, steps, (32,))
    noise = torch.randn_like(x0)
    xt = kept[t, None].sqrt() * x0 + (1 - kept[t, None]).sqrt() * noise
    loss = (model(torch.cat([xt, t[:, None] / steps], 1)) - noise).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for a, b in zip(ema.parameters(), model.parameters()):
            a.lerp_(b, 0.05)
with torch.no_grad():
    x = torch.randn(4, 2)
    for t in reversed(range(steps)):
        eps = ema(torch.cat([x, torch.full((4, 1), t / steps)], 1))
        x = (x - betas[t] / (1 - kept[t]).sqrt() * eps) / (1 - betas[t]).sqrt()
        if t:
            x = x + betas[t].sqrt() * torch.randn_like(x)
print(x)
