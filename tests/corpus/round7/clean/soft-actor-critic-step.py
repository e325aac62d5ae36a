import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, s):
        mean, log_std = self.net(s).chunk(2, -1)
        dist = Normal(mean, log_std.clamp(-4, 1).exp())
        u = dist.rsample()
        a = torch.tanh(u)
        return a, (dist.log_prob(u) - torch.log(1 - a.square() + 1e-6)).sum(-1)


torch.manual_seed(131)
actor = Actor()
critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
critic_target = copy.deepcopy(critic).requires_grad_(False)
log_alpha = torch.zeros((), requires_grad=True)
opts = {
    "actor": torch.optim.Adam(actor.parameters(), 1e-3),
    "critic": torch.optim.Adam(critic.parameters(), 1e-3),
    "alpha": torch.optim.Adam([log_alpha], 1e-2),
}


def q(net, s, a):
    return net(torch.cat([s, a], -1)).squeeze(-1)


def update(name, loss):
    opts[name].zero_grad()
    loss.backward()
    opts[name].step()


for step in range(10):
    s, a = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
    r, s2 = -(a.squeeze(1) - s[:, 0].tanh()).abs(), torch.randn(32, 3)
    with torch.no_grad():
        a2, logp2 = actor(s2)
        goal = r + 0.9 * (q(critic_target, s2, a2) - log_alpha.exp() * logp2)
    update("critic", F.mse_loss(q(critic, s, a), goal))
    critic.requires_grad_(False)
    new_a, logp = actor(s)
    update("actor", (log_alpha.exp().detach() * logp - q(critic, s, new_a)).mean())
    critic.requires_grad_(True)
    update("alpha", -(log_alpha * (logp.detach() - 1.0)).mean())
    with torch.no_grad():
        for slow, fast in zip(critic_target.parameters(), critic.parameters()):
            slow.lerp_(fast, 0.05)
print(log_alpha.item())
