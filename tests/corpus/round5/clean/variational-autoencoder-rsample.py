import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

torch.manual_seed(40)
enc, dec = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 6)), nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 12))
optimizer = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=3e-3)
basis = torch.randn(3, 12)
for step in range(20):
    x = torch.randn(32, 3) @ basis + 0.1 * torch.randn(32, 12)
    mu, log_std = enc(x).chunk(2, 1)
    q = Normal(mu, log_std.exp())
    z = q.rsample()
    nll = 0.5 * (dec(z) - x).square().sum(1)
    kl = kl_divergence(q, Normal(torch.zeros_like(mu), torch.ones_like(mu))).sum(1)
    beta = min(1.0, step / 10)
    loss = (nll + beta * kl).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
