# /// case
# title = "The discriminator's gradients are cleared before the generator's backward adds to them"
# category = "accumulation"
# kind = "discriminator-gradient-left-by-generator-step"
# kinds_also_ok = ["zero-grad-at-the-wrong-place", "stale-gradients", "gradients-leak-between-optimizers", "missing-zero-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["opt_d", "zero_grad", "g_loss", "D"]
# symptom = "every step of the discriminator holds the generator's gradient, which wants the fake samples to look real"
# symptom_check = "any(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in D.parameters())"
# cause = "g_loss.backward() goes through D and adds to its gradients after they were cleared; the next d_loss.backward() adds to that."
# fix = "clear the discriminator's gradients directly before d_loss.backward(), or after g_loss.backward()"
# ///
import math

import torch
from torch import nn

torch.manual_seed(4)
DIM, BATCH = 4, 64
G = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)


def ring(count, modes=8):
    angle = torch.randint(0, modes, (count,)) * (2 * math.pi / modes)
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


for iteration in range(25):
    real = ring(BATCH)
    fake = G(torch.randn(BATCH, DIM))

    d_loss = criterion(D(real), ones) + criterion(D(fake.detach()), zeros)
    d_loss.backward()  #! here
    opt_d.step()  #! also
    opt_d.zero_grad()  #- here

    g_loss = criterion(D(fake), ones)  #! also
    g_loss.backward()  #! also
    opt_g.step()
    opt_g.zero_grad()  #! here
#+     opt_d.zero_grad()

    if iteration % 5 == 0:
        print(f"{iteration:3d} d {d_loss.item():.3f} g {g_loss.item():.3f}")

with torch.no_grad():
    samples = G(torch.randn(512, DIM))
print("mean radius", samples.norm(dim=1).mean().item())
