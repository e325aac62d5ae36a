import copy

import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.actor_t, self.critic_t = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), 1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), 1e-3)

    def update(self, it, s, a, r, s2):
        with torch.no_grad():
            y = r + 0.98 * self.critic_t(torch.cat([s2, self.actor_t(s2)], 1))
        critic_loss = nn.functional.mse_loss(self.critic(torch.cat([s, a], 1)), y)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        if it % 2 == 0:
            actor_loss = -self.critic(torch.cat([s, self.actor(s)], 1)).mean()
            self.actor_opt.zero_grad()
            actor_loss.backward()
            self.actor_opt.step()
            with torch.no_grad():
                for net, slow in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
                    for p, q in zip(net.parameters(), slow.parameters()):
                        q.lerp_(p, 0.05)
        return critic_loss.item()


torch.manual_seed(13)
agent = Agent()
print([agent.update(i, torch.randn(16, 3), torch.rand(16, 1), torch.randn(16, 1), torch.randn(16, 3)) for i in range(6)])
