import math

import torch
from torch import nn

torch.manual_seed(0)


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2))

    def forward(self, x):
        keep = x * self.mask
        s = self.s(keep) * (1 - self.mask)
        t = self.t(keep) * (1 - self.mask)
        return keep + (1 - self.mask) * (x * s.exp() + t), s.sum(1)

    def inverse(self, z):
        keep = z * self.mask
        s = self.s(keep) * (1 - self.mask)
        t = self.t(keep) * (1 - self.mask)
        return keep + (1 - self.mask) * (z - t) * (-s).exp()


flow = nn.ModuleList(Coupling(torch.tensor(m)) for m in ([0.0, 1.0], [1.0, 0.0], [0.0, 1.0]))
optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
for it in range(15):
    a = torch.rand(64) * math.pi
    x = torch.stack([a.cos(), a.sin()], 1) + 0.1 * torch.randn(64, 2)
    logdet = torch.zeros(64)
    z = x
    for layer in flow:
        z, ld = layer(z)
        logdet += ld
    logp = -0.5 * z.pow(2).sum(1) - math.log(2 * math.pi)
    loss = -(logp + logdet).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    s = torch.randn(5, 2)
    for layer in reversed(flow):
        s = layer.inverse(s)
print(loss.item(), s)
