import copy
from contextlib import contextmanager

import torch
from torch import nn
import torch.nn.functional as F


def network(inputs, outputs, last=None):
    layers = [nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs)]
    return nn.Sequential(*layers, *([last] if last else []))


class TwinCritic(nn.Module):
    def __init__(self, state, action):
        super().__init__()
        self.first, self.second = network(state + action, 1), network(state + action, 1)

    def forward(self, state, action):
        joined = torch.cat([state, action], dim=-1)
        return self.first(joined).squeeze(-1), self.second(joined).squeeze(-1)


@contextmanager
def frozen(module):
    module.requires_grad_(False)
    try:
        yield module
    finally:
        module.requires_grad_(True)


class Bidder:
    def __init__(self, state, action, gamma=0.8, tau=0.02, delay=2):
        self.actor, self.critic = network(state, action, nn.Tanh()), TwinCritic(state, action)
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.gamma, self.tau, self.delay, self.updates = gamma, tau, delay, 0

    def targets(self, reward, following):
        with torch.no_grad():
            action = self.actor_target(following)
            action = (action + 0.2 * torch.randn_like(action).clamp(-0.5, 0.5)).clamp(-1, 1)
            return reward + self.gamma * torch.minimum(*self.critic_target(following, action))

    @torch.no_grad()
    def follow(self):
        for slow, fast in ((self.actor_target, self.actor), (self.critic_target, self.critic)):
            for target, source in zip(slow.parameters(), fast.parameters()):
                target.lerp_(source, self.tau)

    def learn(self, state, action, reward, following):
        target = self.targets(reward, following)
        first, second = self.critic(state, action)
        critic_loss = F.mse_loss(first, target) + F.mse_loss(second, target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        self.updates += 1
        if self.updates % self.delay == 0:
            with frozen(self.critic):
                actor_loss = -self.critic(state, self.actor(state))[0].mean()
                self.actor_opt.zero_grad()
                actor_loss.backward()
                self.actor_opt.step()
            self.follow()
        return critic_loss.item()


def auctions(agent, state):
    with torch.no_grad():
        action = (agent.actor(state) + 0.3 * torch.randn(len(state), 2)).clamp(-1, 1)
    wanted = torch.stack([state[:, 0].tanh(), -0.5 * state[:, 1].tanh()], dim=1)
    reward = 1.0 - (action - wanted).square().sum(1)
    following = 0.7 * state + 0.3 * torch.randn_like(state)
    following[:, 2] += 0.2 * action[:, 0]
    return action, reward, following


torch.manual_seed(30)
agent, state, rewards = Bidder(4, 2), torch.randn(64, 4), []
for step in range(400):
    action, reward, following = auctions(agent, state)
    loss = agent.learn(state, action, reward, following)
    rewards.append(reward.mean().item())
    state = following
print(f"reward {sum(rewards[:40]) / 40:.3f} -> {sum(rewards[-40:]) / 40:.3f}, critic {loss:.4f}")
