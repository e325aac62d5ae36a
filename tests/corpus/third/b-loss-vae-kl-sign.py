# /// case
# title = "KL term of the VAE with the wrong sign"
# category = "loss-wiring"
# kind = "loss-sign-wrong"
# severity = "warning"
# severity_by_writer = "error"
# names = ["kl", "logvar", "elbo"]
# difficulty = "medium"
# symptom = "Total loss goes to large negative values, mu and logvar run away; silent."
# symptom_check = "rows[-1][2] < -2"
# cause = "kl = +0.5 * sum(1 + logvar - mu^2 - exp(logvar)) is the negative KL divergence; adding it maximises the divergence from the prior."
# fix = "Use -0.5 * sum(...)."
# evidence = [{ url = "https://github.com/AntixK/PyTorch-VAE/issues/68" }, { url = "https://github.com/ssemeniuta/textvae/issues/4" }, { url = "https://github.com/pytorch/examples/issues/824" }]
# ///
"""Conditional VAE on one-dimensional signals."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class VAEConfig:
    length: int = 24
    latent: int = 3
    hidden: int = 48
    classes: int = 3
    beta: float = 0.5
    lr: float = 5e-3
    steps: int = 50


class Encoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(cfg.length + cfg.classes, cfg.hidden), nn.SiLU())
        self.mu = nn.Linear(cfg.hidden, cfg.latent)
        self.logvar = nn.Linear(cfg.hidden, cfg.latent)

    def forward(self, x, c):
        h = self.body(torch.cat([x, c], -1))
        return self.mu(h), self.logvar(h)


class Decoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cfg.latent + cfg.classes, cfg.hidden), nn.SiLU(), nn.Linear(cfg.hidden, cfg.length))

    def forward(self, z, c):
        return self.net(torch.cat([z, c], -1))


class CVAE(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg, self.encoder, self.decoder = cfg, Encoder(cfg), Decoder(cfg)

    def forward(self, x, c):
        mu, logvar = self.encoder(x, c)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(z, c), mu, logvar

    def elbo(self, x, c):
        recon, mu, logvar = self(x, c)
        rec = F.mse_loss(recon, x, reduction="none").sum(-1)
        kl = 0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1)  #- here
#+         kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1)
        return (rec + self.cfg.beta * kl).mean(), rec.mean(), kl.mean()  #! here


def signals(n, cfg):
    c = torch.randint(0, cfg.classes, (n,))
    phase = torch.rand(n, 1) * 2
    t = torch.linspace(0, 6, cfg.length)
    return torch.sin((1 + c[:, None]) * t + phase), F.one_hot(c, cfg.classes).float()


torch.manual_seed(0)
cfg = VAEConfig()
vae = CVAE(cfg)
opt = torch.optim.Adam(vae.parameters(), lr=cfg.lr)
rows = []
for step in range(cfg.steps):
    x, c = signals(64, cfg)
    loss, rec, kl = vae.elbo(x, c)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    rows.append((loss.item(), rec.item(), kl.item()))
for r in rows[::10]:
    print("loss {:.3f} rec {:.3f} kl {:.3f}".format(*r))
