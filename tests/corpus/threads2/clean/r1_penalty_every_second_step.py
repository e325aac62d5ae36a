import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
D = nn.Sequential(nn.Conv2d(1, 6, 3, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(54, 1))
G = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Unflatten(1, (1, 8, 8)))
d_opt, g_opt = torch.optim.Adam(D.parameters(), 1e-3), torch.optim.Adam(G.parameters(), 1e-3)
for it in range(4):
    real = torch.rand(6, 1, 8, 8) * 2 - 1
    fake = G(torch.randn(6, 4)).detach()
    d_loss = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
    if it % 2 == 0:
        real.requires_grad_(True)
        (grad,) = torch.autograd.grad(D(real).sum(), real, create_graph=True)
        d_loss = d_loss + 5.0 * grad.flatten(1).pow(2).sum(1).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    g_loss = F.softplus(-D(G(torch.randn(6, 4)))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
print(d_loss.item(), g_loss.item())
