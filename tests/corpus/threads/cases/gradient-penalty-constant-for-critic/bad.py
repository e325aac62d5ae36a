import torch
from torch import autograd, nn

torch.manual_seed(2)
gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
critic = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    eps = torch.rand(len(real), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mixed)
    (g,) = autograd.grad(score.sum(), mixed, retain_graph=True)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


for it in range(6):
    real, fake = torch.randn(16, 3) * 2, gen(torch.randn(16, 4)).detach()
    penalty = gradient_penalty(real, fake)
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
    if it % 3 == 2:
        opt_g.zero_grad()
        (-critic(gen(torch.randn(16, 4))).mean()).backward()
        opt_g.step()
