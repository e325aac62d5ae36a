import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(4)
policy, value = nn.Linear(3, 2), nn.Linear(3, 1)
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-2)
for episode in range(10):
    obs = torch.randn(20, 3)
    mu, log_std = policy(obs).chunk(2, -1)
    dist = Normal(mu, log_std.clamp(-3, 1).exp())
    action = dist.sample()
    reward = -(action - obs[:, :1]).pow(2).squeeze(-1)
    baseline = value(obs).squeeze(-1)
    advantage = (reward - baseline).detach()
    actor = -(dist.log_prob(action).squeeze(-1) * advantage).mean()
    critic = (reward - baseline).pow(2).mean()
    opt.zero_grad()
    (actor + 0.5 * critic - 0.01 * dist.entropy().mean()).backward()
    opt.step()
print(critic.item())
