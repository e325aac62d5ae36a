# /// case
# title = "VAE latent drawn with sample() instead of rsample()"
# category = "rl-ssl-stopgrad"
# kind = "graph-break-non-reparameterised-sample"
# severity = "warning"
# names = ["z"]
# difficulty = "medium"
# symptom = "silent: the reconstruction term gives the encoder no gradient (only KL does)"
# symptom_check = "not z.requires_grad"
# cause = "Distribution.sample() runs under no_grad"
# fix = "rsample()"
# evidence = [
#     { url = "https://github.com/nicola-decao/s-vae-pytorch/issues/9" },
#     { url = "https://github.com/AntixK/PyTorch-VAE/issues/12" },
#     { url = "https://github.com/ARISE-Initiative/robomimic/issues/204" },
# ]
# ///
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

torch.manual_seed(21)
enc, dec = nn.Linear(10, 8), nn.Linear(4, 10)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
for step in range(6):
    x = torch.rand(32, 10)
    mu, raw = enc(x).chunk(2, dim=-1)
    q = Normal(mu, nn.functional.softplus(raw) + 1e-4)
    z = q.sample()  #- here
#+     z = q.rsample()
    rec = (dec(z) - x).pow(2).sum(-1).mean()
    kl = kl_divergence(q, Normal(torch.zeros_like(mu), torch.ones_like(mu))).sum(-1).mean()
    opt.zero_grad()
    (rec + kl).backward()
    opt.step()
print(rec.item(), kl.item())
