import copy

import torch
from torch import nn

torch.manual_seed(2)


class Agent:
    def __init__(self, tau=0.02, gamma=0.95):
        self.online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-3)
        self.tau, self.gamma = tau, gamma

    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            goal = r + self.gamma * (1 - done) * self.target(s2).gather(1, best).squeeze(1)
        q = self.online(s).gather(1, a[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for t, p in zip(self.target.parameters(), self.online.parameters()):
                t.lerp_(p, self.tau)
        return loss.item()


agent = Agent()
for it in range(15):
    s = torch.randn(32, 4)
    a = torch.randint(0, 3, (32,))
    print(it, agent.learn(s, a, s[torch.arange(32), a], torch.randn(32, 4), (torch.rand(32) < 0.1).float()))
