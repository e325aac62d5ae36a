import math

import torch
from torch import nn

torch.manual_seed(7)
enc, dec = nn.Linear(8, 6), nn.Linear(3, 8)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
for step in range(12):
    beta = torch.tensor(0.5 * (1 - math.cos(math.pi * step / 12)))
    x = torch.randn(16, 8)
    mu, log_var = enc(x).chunk(2, -1)
    z = mu + torch.randn_like(mu) * (0.5 * log_var).exp()
    recon = (dec(z) - x).pow(2).sum(-1).mean()
    kl = -0.5 * (1 + log_var - mu.pow(2) - log_var.exp()).sum(-1).mean()
    opt.zero_grad()
    (recon + beta * kl).backward()
    opt.step()
print(recon.item(), kl.item())
