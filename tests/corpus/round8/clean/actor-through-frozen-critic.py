import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextlib.contextmanager
def frozen(module):
    module.requires_grad_(False)
    try:
        yield module
    finally:
        module.requires_grad_(True)


class Ddpg:
    def __init__(self, observation=3, actions=1):
        self.actor = nn.Sequential(nn.Linear(observation, 24), nn.ReLU(), nn.Linear(24, actions), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(observation + actions, 24), nn.ReLU(), nn.Linear(24, 1))
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=2e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=5e-3)

    def q(self, state, action):
        return self.critic(torch.cat([state, action], 1)).squeeze(1)

    def learn(self, state, action, reward):
        critic_loss = F.mse_loss(self.q(state, action), reward)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        with frozen(self.critic):
            actor_loss = -self.q(state, self.actor(state)).mean()
            self.actor_opt.zero_grad()
            actor_loss.backward()
            self.actor_opt.step()
        return critic_loss.item(), actor_loss.item()


torch.manual_seed(28)
agent = Ddpg()
for step in range(14):
    state = torch.randn(48, 3)
    with torch.no_grad():
        action = (agent.actor(state) + 0.3 * torch.randn(48, 1)).clamp(-1, 1)
    reward = -(action[:, 0] - state[:, 0].tanh()).square()
    report = agent.learn(state, action, reward)
print(report)
