import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    eps = torch.rand(real.size(0), 1)
    x = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (g,) = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


for step in range(4):
    for _ in range(2):
        real = torch.randn(12, 2) + 2
        fake = G(torch.randn(12, 4)).detach()
        d_loss = D(fake).mean() - D(real).mean() + 10 * gradient_penalty(real, fake)
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
    g_loss = -D(G(torch.randn(12, 4))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
print(d_loss.item(), g_loss.item())
