# /// case
# title = "The inverse of tanh is taken of actions that are exactly 1 or -1"
# category = "numerics"
# kind = "atanh-at-the-boundary"
# kinds_also_ok = ["infinite-log-likelihood", "nan-from-saturated-actions", "missing-clamp-before-atanh"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["atanh", "raw", "act", "clamp"]
# symptom = "the loss is infinite at once and the weights are nan after the first step"
# symptom_check = "any(bool(p.isnan().any()) for p in policy.parameters())"
# cause = "The expert saturates, atanh(1) is infinite, and infinity times zero in the backward gives nan."
# fix = "clamp the actions inside (-1, 1) before atanh"
# ///
import torch
from torch import nn
from torch.distributions import Normal


class SquashedGaussian(nn.Module):
    def __init__(self, obs_dim, act_dim, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs_dim, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.mu = nn.Linear(width, act_dim)
        self.log_std = nn.Linear(width, act_dim)

    def base(self, obs):
        h = self.trunk(obs)
        return Normal(self.mu(h), self.log_std(h).clamp(-2, 1).exp(), validate_args=False)

    def log_prob(self, obs, act):
        normal = self.base(obs)
        raw = torch.atanh(act)  #- here
#+         raw = torch.atanh(act.clamp(-0.999, 0.999))
        return normal.log_prob(raw).sum(-1) - torch.log1p(-act.square() + 1e-6).sum(-1)  #! also

    @torch.no_grad()
    def act(self, obs):
        return self.base(obs).mean.tanh()


def demonstrations(n):
    speed_error = torch.randn(n)
    slope = 0.3 * torch.randn(n)
    gear = torch.rand(n)
    throttle = (0.8 * speed_error + 0.5 * slope).clamp(-1, 1)
    clutch = (2 * gear - 1) * 0.7
    return torch.stack([speed_error, slope, gear], -1), torch.stack([throttle, clutch], -1)


def batches(obs, act, size, epochs):
    for _ in range(epochs):
        for rows in torch.randperm(len(obs)).split(size):
            yield obs[rows], act[rows]


torch.manual_seed(44)
obs, act = demonstrations(1024)
policy = SquashedGaussian(3, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
losses = []
for x, a in batches(obs, act, size=128, epochs=20):
    loss = -policy.log_prob(x, a).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    losses.append(loss.item())
print("nll", losses[0], losses[-1])
print("error", (policy.act(obs) - act).abs().mean().item())
