import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(3, 2)

    def sample(self, s):
        mean, log_std = self.net(s).chunk(2, -1)
        dist = Normal(mean, log_std.clamp(-5, 2).exp())
        u = dist.rsample()
        a = torch.tanh(u)
        logp = dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)
        return a, logp.sum(-1, keepdim=True)


actor, q1, q2 = Actor(), mlp(4, 1), mlp(4, 1)
q1_t, q2_t = copy.deepcopy(q1), copy.deepcopy(q2)
for p in [*q1_t.parameters(), *q2_t.parameters()]:
    p.requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True)
target_entropy = -1.0
actor_opt = torch.optim.Adam(actor.parameters(), 3e-4)
critic_opt = torch.optim.Adam([*q1.parameters(), *q2.parameters()], 3e-4)
alpha_opt = torch.optim.Adam([log_alpha], 3e-4)
for step in range(10):
    s, a = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
    r, s2, d = -(s[:, :1] - a).abs(), torch.randn(32, 3), (torch.rand(32, 1) < 0.1).float()
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        a2, lp2 = actor.sample(s2)
        sa2 = torch.cat([s2, a2], 1)
        y = r + 0.99 * (1 - d) * (torch.min(q1_t(sa2), q2_t(sa2)) - alpha * lp2)
    sa = torch.cat([s, a], 1)
    critic_loss = F.mse_loss(q1(sa), y) + F.mse_loss(q2(sa), y)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    pi, logp = actor.sample(s)
    spi = torch.cat([s, pi], 1)
    actor_loss = (alpha * logp - torch.min(q1(spi), q2(spi))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    alpha_loss = -(log_alpha * (logp + target_entropy).detach()).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
    with torch.no_grad():
        for net, tgt in ((q1, q1_t), (q2, q2_t)):
            for p, pt in zip(net.parameters(), tgt.parameters()):
                pt.mul_(0.995).add_(0.005 * p)
print(critic_loss.item(), actor_loss.item(), log_alpha.exp().item())
