# /// case
# title = "Discriminator phase steps the generator's optimizer"
# category = "optimizer-wiring"
# kind = "wrong-optimizer-stepped"
# severity = "warning"
# severity_by_writer = "error"
# names = ["optim_g", "optim_d", "disc"]
# difficulty = "medium"
# symptom = "Discriminator loss does not move from its initial value apart from noise of the samples; silent."
# symptom_check = "all(torch.equal(a, b) for a, b in zip(d_start, disc.parameters()))"
# cause = "After the discriminator's backward the generator's optimizer is stepped (copy-paste), so the discriminator is never updated."
# fix = "optim_d.step() in the discriminator phase."
# evidence = [{ url = "https://github.com/Lornatang/ESRGAN-PyTorch/issues/39" }, { url = "https://github.com/zhaoyuzhi/deepfillv2/issues/6" }]
# ///
"""Ring-of-gaussians GAN."""
import math
import torch
from torch import nn

torch.manual_seed(5)
LATENT, BATCH = 4, 64
gen = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 2))
disc = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optim_g = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.5, 0.999))
optim_d = torch.optim.Adam(disc.parameters(), lr=4e-3, betas=(0.5, 0.999))  #! also
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)


def real_batch():
    angle = torch.randint(0, 8, (BATCH,)) * (2 * math.pi / 8)
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.02 * torch.randn(BATCH, 2)


d_start = [p.detach().clone() for p in disc.parameters()]
d_log, g_log = [], []
for it in range(50):
    # discriminator
    with torch.no_grad():
        fake = gen(torch.randn(BATCH, LATENT))
    d_loss = bce(disc(real_batch()), ones) + bce(disc(fake), zeros)
    optim_d.zero_grad()
    d_loss.backward()  #! here
    optim_g.step()  #- here
#+     optim_d.step()
    # generator
    g_loss = bce(disc(gen(torch.randn(BATCH, LATENT))), ones)
    optim_g.zero_grad()
    g_loss.backward()
    optim_g.step()
    d_log.append(d_loss.item())
    g_log.append(g_loss.item())
print(f"d {d_log[0]:.3f} -> {d_log[-1]:.3f}   g {g_log[0]:.3f} -> {g_log[-1]:.3f}")
