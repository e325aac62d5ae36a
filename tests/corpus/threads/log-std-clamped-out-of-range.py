# /// case
# title = "log_std starts outside the clamp's range and never moves"
# category = "uncovered"
# kind = "zero-gradient-op"
# kinds_also_ok = ["clamp-saturated", "dead-activation"]
# severity = "warning"
# names = ["log_std", "clamp"]
# symptom = "log_std's gradient is exactly zero"
# symptom_check = "float(policy.log_std.grad.abs().max()) == 0"
# cause = "clamp has derivative zero outside its range"
# fix = "tanh squashing"
# evidence = [
#     { url = "https://github.com/DLR-RM/stable-baselines3/issues/620", title = "[Feature Request] To change the way to deal with the logarithm of standard deviation for SAC" },
#     { url = "https://github.com/watchernyu/REDQ/issues/8", title = "Some Questions about Code Implements." },
# ]
# ///
import torch
from torch import nn
from torch.distributions import Normal


class GaussianPolicy(nn.Module):
    LOW, HIGH = -5.0, 2.0

    def __init__(self, obs=4, act=2):
        super().__init__()
        self.mu = nn.Linear(obs, act)
        self.log_std = nn.Parameter(torch.full((act,), 3.0))  #! also

    def dist(self, obs):
        log_std = self.log_std.clamp(self.LOW, self.HIGH)  #- here
#+         log_std = self.LOW + 0.5 * (self.HIGH - self.LOW) * (torch.tanh(self.log_std) + 1)
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
    loss.backward()  #! also
    opt.step()
