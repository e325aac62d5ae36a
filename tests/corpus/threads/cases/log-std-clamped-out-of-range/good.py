import torch
from torch import nn
from torch.distributions import Normal


class GaussianPolicy(nn.Module):
    LOW, HIGH = -5.0, 2.0

    def __init__(self, obs=4, act=2):
        super().__init__()
        self.mu = nn.Linear(obs, act)
        self.log_std = nn.Parameter(torch.full((act,), 3.0))

    def dist(self, obs):
        log_std = self.LOW + 0.5 * (self.HIGH - self.LOW) * (torch.tanh(self.log_std) + 1)
        return Normal(self.mu(obs), log_std.exp())


torch.manual_seed(3)
policy = GaussianPolicy()
opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
for _ in range(8):
    obs = torch.randn(32, 4)
    dist = policy.dist(obs)
    actions = dist.sample()
    reward = -actions.pow(2).sum(-1)
    loss = -(dist.log_prob(actions).sum(-1) * (reward - reward.mean())).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
