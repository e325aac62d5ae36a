import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(100)
G = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))


def adversarial(logits, real):
    target = torch.ones_like(logits) if real else torch.zeros_like(logits)
    return F.binary_cross_entropy_with_logits(logits, target)


for step in range(12):
    real = torch.randn(24, 2) * torch.tensor([0.5, 2.0])
    fake = G(torch.randn(24, 4))

    opt_d.zero_grad()
    adversarial(D(real), True).backward()
    adversarial(D(fake.detach()), False).backward()
    opt_d.step()

    for p in D.parameters():
        p.requires_grad_(False)
    opt_g.zero_grad()
    loss_g = adversarial(D(fake), True)
    loss_g.backward()
    opt_g.step()
    for p in D.parameters():
        p.requires_grad_(True)
    if step % 4 == 0:
        print(step, loss_g.item())
