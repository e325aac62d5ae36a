"""BP841 divergence-rewarded."""

PROGRAMS = {
    "a helper adds half of the sum": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(12)
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.lv, self.dec = nn.Linear(12, 16), nn.Linear(16, 3), nn.Linear(16, 3), nn.Linear(3, 12)
    def forward(self, x):
        h = torch.relu(self.enc(x)); mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.dec(z), mu, lv
def elbo(x, out, mu, lv):
    rec = F.mse_loss(out, x, reduction='sum') / len(x)
    kl = 0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()  # <- BP841
    return rec + kl
v = VAE(); opt = torch.optim.Adam(v.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(16, 12); loss = elbo(x, *v(x))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "right: a helper adds half of the sum": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(12)
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.lv, self.dec = nn.Linear(12, 16), nn.Linear(16, 3), nn.Linear(16, 3), nn.Linear(3, 12)
    def forward(self, x):
        h = torch.relu(self.enc(x)); mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return self.dec(z), mu, lv
def elbo(x, out, mu, lv):
    rec = F.mse_loss(out, x, reduction='sum') / len(x)
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1).mean()
    return rec + kl
v = VAE(); opt = torch.optim.Adam(v.parameters(), 1e-3)
for _ in range(8):
    x = torch.randn(16, 12); loss = elbo(x, *v(x))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "right: an introspective autoencoder": """
import torch
from torch import nn

torch.manual_seed(0)
enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt_e, opt_d = torch.optim.Adam(enc.parameters(), lr=1e-3), torch.optim.Adam(dec.parameters(), lr=1e-3)


def calc_kl(mu, logvar):
    return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1)


def encode(x):
    mu, logvar = enc(x).chunk(2, 1)
    return mu, logvar, mu + (0.5 * logvar).exp() * torch.randn_like(mu)


for _ in range(4):
    x = torch.randn(16, 6)
    mu, logvar, z = encode(x)
    rec = (dec(z) - x).pow(2).sum(1)
    real = rec + calc_kl(mu, logvar)
    fake = dec(torch.randn(16, 2)).detach()
    fmu, flogvar, fz = encode(fake)
    frec = (dec(fz) - fake).pow(2).sum(1)
    fkl = calc_kl(fmu, flogvar)
    loss_e = real.mean() + 0.25 * (-0.1 * (frec + fkl)).exp().mean()
    opt_e.zero_grad()
    loss_e.backward()
    opt_e.step()
    mu, logvar, z = encode(x)
    gen = dec(torch.randn(16, 2))
    gmu, glogvar, _ = encode(gen)
    loss_d = (dec(z.detach()) - x).pow(2).sum(1).mean() + calc_kl(gmu, glogvar).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
""",
    "right: a margin on the divergence of what was generated": """
import torch
from torch import nn

torch.manual_seed(0)
enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt_e, opt_d = torch.optim.Adam(enc.parameters(), lr=1e-3), torch.optim.Adam(dec.parameters(), lr=1e-3)
for _ in range(4):
    x = torch.randn(16, 6)
    mu, logvar = enc(x).chunk(2, 1)
    z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
    rec = (dec(z) - x).pow(2).sum(1).mean()
    kl_real = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    fmu, flogvar = enc(dec(torch.randn(16, 2)).detach()).chunk(2, 1)
    kl_fake = -0.5 * (1 + flogvar - fmu.pow(2) - flogvar.exp()).sum(1).mean()
    loss_e = rec + kl_real + torch.relu(2.0 - kl_fake)
    opt_e.zero_grad()
    opt_d.zero_grad()
    loss_e.backward()
    opt_e.step()
    opt_d.step()
""",
}
