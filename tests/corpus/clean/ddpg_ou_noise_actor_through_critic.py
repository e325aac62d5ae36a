import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class OUNoise:
    def __init__(self, size, theta=0.15, sigma=0.2):
        self.state, self.theta, self.sigma = torch.zeros(size), theta, sigma

    def sample(self):
        self.state = self.state - self.theta * self.state + self.sigma * torch.randn_like(self.state)
        return self.state


class Agent:
    def __init__(self):
        self.actor_local = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())
        self.actor_target = copy.deepcopy(self.actor_local)
        self.critic_local = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.critic_target = copy.deepcopy(self.critic_local)
        self.actor_opt = torch.optim.Adam(self.actor_local.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic_local.parameters(), lr=1e-3, weight_decay=1e-4)
        self.noise = OUNoise(1)
        self.memory = []

    def act(self, state):
        self.actor_local.eval()
        with torch.no_grad():
            a = self.actor_local(state)
        self.actor_local.train()
        return (a + self.noise.sample()).clamp(-1, 1)

    def learn(self, batch, gamma=0.95, tau=0.01):
        s, a, r, s2 = (torch.stack(c) for c in zip(*batch))
        q_next = self.critic_target(torch.cat([s2, self.actor_target(s2)], 1))
        q_target = r + gamma * q_next
        q_expected = self.critic_local(torch.cat([s, a], 1))
        critic_loss = F.mse_loss(q_expected, q_target.detach())
        self.critic_opt.zero_grad()
        critic_loss.backward()
        torch.nn.utils.clip_grad_norm_(self.critic_local.parameters(), 1)
        self.critic_opt.step()
        actor_loss = -self.critic_local(torch.cat([s, self.actor_local(s)], 1)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        for local, target in ((self.critic_local, self.critic_target), (self.actor_local, self.actor_target)):
            for tp, lp in zip(target.parameters(), local.parameters()):
                tp.data.copy_(tau * lp.data + (1.0 - tau) * tp.data)
        return critic_loss.item(), actor_loss.item()


agent, state = Agent(), torch.randn(3)
for t in range(40):
    action = agent.act(state)
    nxt = 0.8 * state + 0.3 * torch.randn(3)
    agent.memory.append((state, action, -(action - nxt.mean()).abs(), nxt))
    state = nxt
    if len(agent.memory) > 16 and t % 4 == 0:
        idx = torch.randint(0, len(agent.memory), (16,))
        losses = agent.learn([agent.memory[i] for i in idx])
print(losses)
