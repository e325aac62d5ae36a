import copy

import torch
import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, steps, dim=24):
        super().__init__()
        self.time = nn.Embedding(steps, dim)
        self.inp, self.mid, self.out = nn.Linear(2, dim), nn.Linear(dim, dim), nn.Linear(dim, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        h = nn.functional.silu(self.inp(x) + self.time(t))
        return self.out(nn.functional.silu(self.mid(h)))


class EMA:
    def __init__(self, model, decay):
        self.shadow, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


torch.manual_seed(124)
T = 20
alpha_bar = torch.cumprod(1 - torch.linspace(1e-3, 0.2, T), dim=0)
model = Denoiser(T)
ema = EMA(model, 0.9)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(20):
    x0 = torch.randn(64, 2) * 0.1 + torch.randint(0, 2, (64, 1)) * 2 - 1
    t, noise = torch.randint(0, T, (64,)), torch.randn(64, 2)
    a = alpha_bar[t].unsqueeze(1)
    loss = (model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
with torch.no_grad():
    print(loss.item(), ema.shadow(torch.randn(4, 2), torch.full((4,), T - 1)).norm().item())
