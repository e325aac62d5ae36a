import torch
import torch.nn as nn
from torch.distributions import Categorical


class Bandit:
    """Contextual bandit whose best arm is the sign pattern of the context."""

    def __init__(self, arms=4):
        self.arms = arms

    def context(self, n):
        return torch.randn(n, 2)

    def reward(self, context, arm):
        best = (context[:, 0] > 0).long() * 2 + (context[:, 1] > 0).long()
        return (arm == best).float() + 0.1 * torch.randn(len(arm))


torch.manual_seed(1)
bandit = Bandit()
policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, bandit.arms))
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
baseline, rewards = 0.0, []
for step in range(25):
    context = bandit.context(64)
    choice = Categorical(logits=policy(context))
    arm = choice.sample()
    reward = bandit.reward(context, arm)
    loss = -((reward - baseline) * choice.log_prob(arm)).mean() - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    rewards.append(reward.mean().item())
print(rewards[0], rewards[-1])
