# /// case
# title = "Identity term compares an image with its translation"
# category = "loss"
# kind = "loss-wrong-operands"
# severity = "warning"
# names = ["A2B_id_loss", "identity_loss_fn", "A2B"]
# symptom = "the identity term pulls the translation back to its input"
# symptom_check = "reaches is None"
# cause = "it must compare A with the generator towards A"
# fix = "identity_loss_fn(A, G_B2A(A))"
# evidence = [
#     { url = "https://github.com/LynnHo/CycleGAN-Tensorflow-2/issues/19", title = "Identity loss computed wrongly?" },
#     { url = "https://github.com/fastai/course-v3/pull/449", title = "Updating cyclegan identity loss" },
# ]
# ///
import itertools

import torch
import torch.nn as nn


def generator():
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.InstanceNorm2d(6), nn.ReLU(), nn.Conv2d(6, 1, 3, padding=1), nn.Tanh())


def discriminator():
    return nn.Sequential(nn.Conv2d(1, 6, 3, 2), nn.LeakyReLU(0.2), nn.Conv2d(6, 1, 3))


torch.manual_seed(75)
G_A2B, G_B2A, D_A, D_B = generator(), generator(), discriminator(), discriminator()
G_optimizer = torch.optim.Adam(itertools.chain(G_A2B.parameters(), G_B2A.parameters()), lr=2e-4, betas=(0.5, 0.999))
D_optimizer = torch.optim.Adam(itertools.chain(D_A.parameters(), D_B.parameters()), lr=2e-4, betas=(0.5, 0.999))
cycle_loss_fn = identity_loss_fn = nn.L1Loss()
lsgan = nn.MSELoss()


def g_loss(A, B):
    A2B, B2A = G_A2B(A), G_B2A(B)
    A2B2A, B2A2B = G_B2A(A2B), G_A2B(B2A)
    adversarial = sum(lsgan(s, torch.ones_like(s)) for s in (D_B(A2B), D_A(B2A)))
    cycle = cycle_loss_fn(A2B2A, A) + cycle_loss_fn(B2A2B, B)
    A2B_id_loss = identity_loss_fn(A, A2B)  #- here
    B2A_id_loss = identity_loss_fn(B, B2A)  #- here
#+     A2B_id_loss = identity_loss_fn(A, G_B2A(A))
#+     B2A_id_loss = identity_loss_fn(B, G_A2B(B))
    identity = A2B_id_loss + B2A_id_loss
    return adversarial + 10.0 * cycle + 5.0 * identity, A2B_id_loss, (A2B, B2A)  #! also


for epoch in range(3):
    A, B = torch.rand(2, 4, 1, 8, 8) * 2 - 1
    loss, id_term, (A2B, B2A) = g_loss(A, B)
    reaches = torch.autograd.grad(id_term, G_B2A[0].weight, retain_graph=True, allow_unused=True)[0]
    G_optimizer.zero_grad()
    loss.backward()
    G_optimizer.step()
    d_loss = 0.0
    for D, real, fake in ((D_A, A, B2A), (D_B, B, A2B)):
        real_score, fake_score = D(real), D(fake.detach())
        d_loss = d_loss + lsgan(real_score, torch.ones_like(real_score)) + lsgan(fake_score, torch.zeros_like(fake_score))
    D_optimizer.zero_grad()
    d_loss.backward()
    D_optimizer.step()
print(loss.item(), d_loss.item())
