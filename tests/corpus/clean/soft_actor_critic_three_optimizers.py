import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(3)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(3, 2)

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_prob = normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(-1, keepdim=True)


policy, q1, q2 = Policy(), mlp(4, 1), mlp(4, 1)
targets = [copy.deepcopy(q).requires_grad_(False) for q in (q1, q2)]
log_alpha = torch.zeros(1, requires_grad=True)
q_opt = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=1e-3)
pi_opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
alpha_opt = torch.optim.Adam([log_alpha], lr=1e-3)

for step in range(6):
    obs, act, rew, nxt = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1, torch.randn(32, 1), torch.randn(32, 3)
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        a2, lp2 = policy(nxt)
        q_next = torch.min(*(t(torch.cat([nxt, a2], 1)) for t in targets))
        backup = rew + 0.99 * (q_next - alpha * lp2)
    both = torch.cat([obs, act], 1)
    q_loss = F.mse_loss(q1(both), backup) + F.mse_loss(q2(both), backup)
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()

    for p in q_opt.param_groups[0]["params"]:
        p.requires_grad_(False)
    a, lp = policy(obs)
    pair = torch.cat([obs, a], 1)
    pi_loss = (alpha * lp - torch.min(q1(pair), q2(pair))).mean()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()
    for p in q_opt.param_groups[0]["params"]:
        p.requires_grad_(True)

    alpha_loss = -(log_alpha * (lp + 1.0).detach()).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()

    with torch.no_grad():
        for q, t in zip((q1, q2), targets):
            for p, pt in zip(q.parameters(), t.parameters()):
                pt.mul_(0.995).add_(0.005 * p)
print(q_loss.item(), pi_loss.item(), log_alpha.item())
