import copy
import math

import torch
from torch import nn

torch.manual_seed(0)
T = 20
s = 0.008
grid = torch.arange(T + 1) / T
f = torch.cos((grid + s) / (1 + s) * math.pi / 2) ** 2
betas = (1 - f[1:] / f[:-1]).clamp(max=0.999)
alphas = 1 - betas
abar = torch.cumprod(alphas, 0)


def embed(t, dim=16):
    freq = torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2))
    arg = t[:, None].float() * freq[None]
    return torch.cat([arg.sin(), arg.cos()], -1)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU())
        self.inp = nn.Linear(2, 32)
        self.out = nn.Sequential(nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 2))
        nn.init.zeros_(self.out[-1].weight)
        nn.init.zeros_(self.out[-1].bias)

    def forward(self, x, t):
        return self.out(self.inp(x) + self.time(embed(t)))


model = Denoiser()
ema = copy.deepcopy(model).requires_grad_(False).eval()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(12):
    x0 = torch.randn(32, 2) * 0.2 + torch.tensor([1.0, -1.0])
    t = torch.randint(0, T, (32,))
    noise = torch.randn_like(x0)
    xt = abar[t].sqrt()[:, None] * x0 + (1 - abar[t]).sqrt()[:, None] * noise
    loss = (model(xt, t) - noise).pow(2).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    with torch.no_grad():
        for pe, p in zip(ema.parameters(), model.parameters()):
            pe.lerp_(p, 0.1)


@torch.no_grad()
def sample(n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = ema(x, t)
        x = (x - betas[i] / (1 - abar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


print(loss.item(), sample(8).mean(0))
