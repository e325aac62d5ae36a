import copy

import torch
from torch import nn
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


class Policy(nn.Module):
    def __init__(self, observation, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(observation, 32), nn.SiLU(), nn.Linear(32, 2 * actions))

    def forward(self, observation):
        mean, log_std = self.net(observation).chunk(2, dim=-1)
        base = Independent(Normal(mean, log_std.clamp(-3, 0.5).exp()), 1)
        return TransformedDistribution(base, TanhTransform(cache_size=1))


class Critics(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.each = nn.ModuleList(nn.Sequential(nn.Linear(inputs, 32), nn.SiLU(), nn.Linear(32, 1)) for _ in range(2))

    def forward(self, observation, action):
        x = torch.cat([observation, action], -1)
        return torch.cat([critic(x) for critic in self.each], -1)


def step_world(observation, action):
    following = 0.9 * observation + 0.3 * torch.cat([action, -action], 1) + 0.05 * torch.randn_like(observation)
    return following, -following.square().sum(1)


torch.manual_seed(151)
policy, critics = Policy(4, 2), Critics(6)
target = copy.deepcopy(critics).eval().requires_grad_(False)
log_alpha = torch.tensor(-1.0, requires_grad=True)
target_entropy = -2.0
policy_opt = torch.optim.Adam(policy.parameters(), lr=2e-3)
critics_opt = torch.optim.Adam(critics.parameters(), lr=2e-3)
alpha_opt = torch.optim.Adam([log_alpha], lr=1e-2)
observation = torch.randn(64, 4)
for step in range(8):
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        action = policy(observation).sample()
        following, reward = step_world(observation, action)
        dist = policy(following)
        then = dist.sample()
        goal = reward + 0.95 * (target(following, then).min(1).values - alpha * dist.log_prob(then))
    critic_loss = (critics(observation, action) - goal.unsqueeze(1)).square().sum(1).mean()
    critics_opt.zero_grad()
    critic_loss.backward()
    critics_opt.step()

    dist = policy(observation)
    chosen = dist.rsample()
    log_prob = dist.log_prob(chosen)
    policy_loss = (alpha * log_prob - critics(observation, chosen).min(1).values).mean()
    policy_opt.zero_grad()
    policy_loss.backward()
    policy_opt.step()

    alpha_loss = -(log_alpha * (log_prob.detach() + target_entropy)).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), critics.parameters()):
            slow.lerp_(fast, 0.05)
    observation = following
print(f"critic {critic_loss.item():.3f} policy {policy_loss.item():.3f} alpha {log_alpha.exp().item():.3f}")
