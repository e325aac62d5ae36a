import torch
from torch import autograd, nn

torch.manual_seed(4)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.0, 0.9))


def penalty(real, fake):
    mix = torch.rand(len(real), 1)
    x = (mix * real + (1 - mix) * fake).requires_grad_(True)
    grad = autograd.grad(D(x).sum(), x, create_graph=True)[0]
    return ((grad.norm(dim=1) - 1) ** 2).mean()


for it in range(5):
    D.requires_grad_(True)
    for _ in range(3):
        real = torch.randn(32, 2) * 0.3 + 1
        fake = G(torch.randn(32, 4)).detach()
        loss_d = D(fake).mean() - D(real).mean() + 10 * penalty(real, fake)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
    D.requires_grad_(False)
    loss_g = -D(G(torch.randn(32, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    print(it, loss_d.item(), loss_g.item())
