# /// case
# title = "The discriminator steps with gradients that the generator's backward left"
# category = "accumulation"
# kind = "missing-zero-grad"
# kinds_also_ok = ["gradients-leak-between-losses", "stale-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["d_opt", "zero_grad"]
# symptom = "the discriminator's gradient is not that of its own loss"
# symptom_check = "norms[-1] > 1.0"
# cause = "g_loss.backward() writes into D, and D is not cleared before d_loss.backward()"
# fix = "d_opt.zero_grad()"
# ///
import torch
import torch.nn as nn

torch.manual_seed(13)
Z = 4
G = nn.Sequential(nn.Linear(Z, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_opt = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
norms = []


def real_batch(n):
    angle = torch.rand(n, 1) * 6.2832
    return torch.cat([angle.cos(), angle.sin()], dim=1)


def labels(like, value):
    return torch.full_like(like, value)


for step in range(12):
    fake = G(torch.randn(32, Z))
    verdict = D(fake)
    g_loss = bce(verdict, labels(verdict, 1.0))
    g_opt.zero_grad()
    g_loss.backward()  #! also
    g_opt.step()

    on_real, on_fake = D(real_batch(32)), D(fake.detach())
    d_loss = bce(on_real, labels(on_real, 1.0)) + bce(on_fake, labels(on_fake, 0.0))
#+     d_opt.zero_grad()
    d_loss.backward()  #! here
    norms.append(nn.utils.get_total_norm([p.grad for p in D.parameters()]).item())
    d_opt.step()  #! also
    if step % 4 == 0:
        print(step, d_loss.item(), g_loss.item(), norms[-1])
