"""BP607 graph-break-sample."""

PROGRAMS = {
    "in a VAE's method": """
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(6, 4), nn.Linear(2, 6)

    def encode(self, x):
        mean, spread = self.enc(x).chunk(2, -1)
        return Normal(mean, spread.exp())

    def forward(self, x):
        latent = self.encode(x).sample()  # <- BP607
        return self.dec(latent)

vae = Vae()
opt = torch.optim.Adam(vae.parameters(), lr=1e-2)
for x in torch.rand(3, 10, 6):
    loss = (vae(x) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a sample beside a term of the distribution": """
import torch
from torch import nn
from torch.distributions import Normal

enc, dec = nn.Linear(6, 2), nn.Linear(2, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
for x in torch.rand(3, 10, 6):
    posterior = Normal(enc(x), 1.0)
    latent = posterior.sample()  # <- BP607
    loss = (dec(latent) - x).pow(2).mean() + posterior.mean.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "discrete values have no rsample": """
import torch
from torch import nn
from torch.distributions import Bernoulli

gate, net = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*gate.parameters(), *net.parameters()], lr=1e-2)
for x in torch.rand(3, 10, 4):
    keep = Bernoulli(logits=gate(x)).sample()  # <- BP607
    loss = net(x * keep).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
