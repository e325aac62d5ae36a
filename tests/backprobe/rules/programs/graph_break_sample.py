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
    "right: log-probabilities kept in a list of tuples": """
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Normal

torch.manual_seed(5)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu = nn.Linear(2, 1)
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, s):
        return Normal(self.mu(s), self.log_std.exp())


policy, baseline = Policy(), nn.Linear(2, 1)
pi_opt, v_opt = optim.Adam(policy.parameters(), 1e-2), optim.Adam(baseline.parameters(), 1e-2)


def episode():
    s, log = torch.randn(2), []
    for _ in range(10):
        d = policy(s)
        a = d.sample()
        r = -(s.sum() + a).pow(2).item()
        log.append((s, d.log_prob(a).sum(), r))
        s = (s + 0.1 * torch.cat((a, a)) + 0.05 * torch.randn(2)).clamp(-3, 3)
    return log


for ep in range(5):
    trajectory = episode()
    G, returns = 0.0, []
    for _, _, r in trajectory[::-1]:
        G = r + 0.9 * G
        returns.append(G)
    returns = torch.tensor(returns[::-1])
    states = torch.stack([s for s, _, _ in trajectory])
    logp = torch.stack([lp for _, lp, _ in trajectory])
    v = baseline(states).squeeze(1)
    delta = returns - v.detach()
    pi_loss = -(logp * delta).sum()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()
    v_loss = F.smooth_l1_loss(v, returns)
    v_opt.zero_grad()
    v_loss.backward()
    v_opt.step()
    print(ep, returns[0].item())
""",
}
