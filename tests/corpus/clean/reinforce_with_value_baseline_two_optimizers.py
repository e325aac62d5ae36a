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
