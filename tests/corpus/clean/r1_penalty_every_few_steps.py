import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Softplus(), nn.Linear(32, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


def r1(real_logits, real):
    (g,) = torch.autograd.grad(real_logits.sum(), real, create_graph=True)
    return g.pow(2).flatten(1).sum(1).mean()


def toggle(net, on):
    for p in net.parameters():
        p.requires_grad_(on)


gen = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
disc = Disc()
g_opt = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.0, 0.99))
d_opt = torch.optim.Adam(disc.parameters(), lr=2e-3, betas=(0.0, 0.99))
d_every = 4
for i in range(12):
    toggle(gen, False)
    toggle(disc, True)
    real = torch.randn(16, 4) * torch.tensor([1.0, 2.0, 0.5, 1.0])
    fake = gen(torch.randn(16, 8))
    d_loss = F.softplus(disc(fake)).mean() + F.softplus(-disc(real)).mean()
    d_opt.zero_grad(set_to_none=True)
    d_loss.backward()
    d_opt.step()
    if i % d_every == 0:
        real.requires_grad = True
        penalty = r1(disc(real), real)
        d_opt.zero_grad(set_to_none=True)
        (5.0 * d_every * penalty).backward()
        d_opt.step()
    toggle(gen, True)
    toggle(disc, False)
    g_loss = F.softplus(-disc(gen(torch.randn(16, 8)))).mean()
    g_opt.zero_grad(set_to_none=True)
    g_loss.backward()
    g_opt.step()
print(d_loss.item(), penalty.item(), g_loss.item())
