# /// case
# title = "GAN: the discriminator's optimizer was given the generator's parameters (copy and paste)"
# category = "gan"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["opt_d", "disc"]
# difficulty = "medium"
# symptom = "silent: the discriminator never changes"
# symptom_check = "all(torch.equal(a, b) for a, b in zip(d0, disc.parameters()))"
# cause = "wrong parameters in the second optimizer"
# fix = "torch.optim.Adam(disc.parameters(), ...)"
# evidence = [
#     { url = "https://github.com/zhaoyuzhi/deepfillv2/pull/3" },
#     { url = "https://github.com/line/open-universe/issues/5" },
#     { url = "https://github.com/Lornatang/ESRGAN-PyTorch/issues/39" },
#     { url = "https://github.com/wiseodd/controlled-text-generation/issues/15" },
# ]
# ///
"""GAN for a ring of two-dimensional Gaussians."""
import math

import torch
from torch import nn

LATENT = 8


def ring(n, modes=8, radius=2.0, std=0.05):
    angle = torch.randint(0, modes, (n,)) * (2 * math.pi / modes)
    centre = torch.stack([angle.cos(), angle.sin()], dim=1) * radius
    return centre + std * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(LATENT, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2),
        )

    def forward(self, z):
        return self.layers(z)


class Discriminator(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def d_step(gen, disc, opt, n):
    real = ring(n)
    with torch.no_grad():
        fake = gen(torch.randn(n, LATENT))
    loss = nn.functional.softplus(-disc(real)).mean() + nn.functional.softplus(disc(fake)).mean()
    disc.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.item()


def g_step(gen, disc, opt, n):
    loss = nn.functional.softplus(-disc(gen(torch.randn(n, LATENT)))).mean()
    gen.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.item()


torch.manual_seed(7)
gen, disc = Generator(), Discriminator()
d0 = [p.detach().clone() for p in disc.parameters()]
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.99))
opt_d = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.99))  #- here
#+ opt_d = torch.optim.Adam(disc.parameters(), lr=1e-3, betas=(0.5, 0.99))
for step in range(12):
    ld = d_step(gen, disc, opt_d, 64)
    lg = g_step(gen, disc, opt_g, 64)
    if step % 4 == 0:
        print(step, round(ld, 3), round(lg, 3))
