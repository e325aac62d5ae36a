import copy

import torch
from torch import nn

torch.manual_seed(34)


class Denoiser(nn.Module):
    def __init__(self, dim=2, steps=40):
        super().__init__()
        beta = torch.linspace(1e-3, 0.2, steps)
        self.register_buffer("beta", beta)
        self.register_buffer("bar", (1 - beta).cumprod(0))
        self.time = nn.Embedding(steps, 16)
        self.net = nn.Sequential(nn.Linear(dim + 16, 48), nn.SiLU(), nn.Linear(48, dim))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], 1))


model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(20):
    x0 = torch.randn(64, 2) * 0.2 + 1
    t, noise = torch.randint(0, 40, (64,)), torch.randn(64, 2)
    a = model.bar[t][:, None]
    loss = (model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for e, p in zip(average.parameters(), model.parameters()):
            e.lerp_(p, 0.05)
with torch.no_grad():
    x = torch.randn(10, 2)
    for t in reversed(range(40)):
        at = torch.full((10,), t)
        b, a = average.beta[t], average.bar[t]
        x = (x - b / (1 - a).sqrt() * average(x, at)) / (1 - b).sqrt()
        if t:
            x = x + b.sqrt() * torch.randn_like(x)
print(loss.item(), x.mean().item())
