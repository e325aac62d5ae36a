import copy

import torch
from torch import nn

torch.manual_seed(39)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


actor, q1, q2 = mlp(3, 4), mlp(5, 1), mlp(5, 1)
targets = [copy.deepcopy(q).requires_grad_(False) for q in (q1, q2)]
log_alpha = torch.zeros(1, requires_grad=True)
opt_actor = torch.optim.Adam(actor.parameters(), 1e-3)
opt_q = torch.optim.Adam([*q1.parameters(), *q2.parameters()], 1e-3)
opt_alpha = torch.optim.Adam([log_alpha], 1e-3)


def act(s):
    mu, log_std = actor(s).chunk(2, 1)
    dist = torch.distributions.Normal(mu, log_std.clamp(-4, 1).exp())
    raw = dist.rsample()
    logp = (dist.log_prob(raw) - torch.log(1 - raw.tanh().square() + 1e-6)).sum(1, keepdim=True)
    return raw.tanh(), logp


for step in range(8):
    s, a, s2 = torch.randn(32, 3), torch.rand(32, 2) * 2 - 1, torch.randn(32, 3)
    r = -(a - s[:, :2]).square().sum(1, keepdim=True)
    with torch.no_grad():
        a2, logp2 = act(s2)
        y = r + 0.95 * (torch.min(*[t(torch.cat([s2, a2], 1)) for t in targets]) - log_alpha.exp() * logp2)
    pair = torch.cat([s, a], 1)
    loss_q = (q1(pair) - y).square().mean() + (q2(pair) - y).square().mean()
    opt_q.zero_grad()
    loss_q.backward()
    opt_q.step()

    for q in (q1, q2):
        q.requires_grad_(False)
    new, logp = act(s)
    pair = torch.cat([s, new], 1)
    loss_pi = (log_alpha.exp().detach() * logp - torch.min(q1(pair), q2(pair))).mean()
    opt_actor.zero_grad()
    loss_pi.backward()
    opt_actor.step()
    for q in (q1, q2):
        q.requires_grad_(True)

    loss_alpha = -(log_alpha * (logp + (-2.0)).detach()).mean()
    opt_alpha.zero_grad()
    loss_alpha.backward()
    opt_alpha.step()
    with torch.no_grad():
        for t, q in zip(targets, (q1, q2)):
            for a_, b_ in zip(t.parameters(), q.parameters()):
                a_.lerp_(b_, 0.01)
print(loss_q.item(), loss_pi.item(), log_alpha.item())
