# /// case
# title = "R1 penalty marks the real batch as requiring grad only after the forward pass"
# category = "requires-grad"
# kind = "grad-wrt-unused-input"
# severity = "error"
# names = ["real", "requires_grad_", "d_real"]
# difficulty = "medium"
# symptom = "RuntimeError: One of the differentiated Tensors appears to not have been used in the graph"
# raises = "RuntimeError"
# raises_message = "appears to not have been used in the graph"
# cause = "the discriminator ran on the real batch before requires_grad_() was set, so its graph does not reach the batch"
# fix = "set requires_grad_() before the forward pass"
# evidence = [{ url = "https://github.com/caogang/wgan-gp/issues/4" }, { url = "https://github.com/dragen1860/Deep-Learning-with-PyTorch-Tutorials/issues/6" }]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(sizes, last=None):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.Softplus()]
    return nn.Sequential(*layers[:-1])


def r1_penalty(d_out, x):
    grad, = torch.autograd.grad(d_out.sum(), x, create_graph=True)  #! also
    return grad.pow(2).sum(dim=1).mean()


def ring(n):
    angle = torch.rand(n) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


torch.manual_seed(0)
gen = mlp([4, 32, 32, 2])
disc = mlp([2, 32, 32, 1])
g_opt = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.0, 0.99))
d_opt = torch.optim.Adam(disc.parameters(), lr=1e-3, betas=(0.0, 0.99))
gamma, r1_every = 5.0, 4

for it in range(24):
    real = ring(64)  #! also
#+     if it % r1_every == 0:
#+         real.requires_grad_(True)
    with torch.no_grad():
        fake = gen(torch.randn(64, 4))
    d_real, d_fake = disc(real), disc(fake)  #! here
    d_loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
    if it % r1_every == 0:
        real.requires_grad_(True)  #- here
        d_loss = d_loss + 0.5 * gamma * r1_every * r1_penalty(d_real, real)  #! here
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()

    g_loss = F.softplus(-disc(gen(torch.randn(64, 4)))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
