import copy

import torch
import torch.nn as nn


class DoubleDQN:
    def __init__(self, net, tau=0.05, gamma=0.97):
        self.net, self.tau, self.gamma = net, tau, gamma
        self.target = copy.deepcopy(net).requires_grad_(False)
        self.opt = torch.optim.Adam(net.parameters(), lr=1e-3)

    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            best = self.net(s2).argmax(1, keepdim=True)
            y = r + self.gamma * (1 - done) * self.target(s2).gather(1, best).squeeze(1)
        loss = nn.functional.huber_loss(self.net(s).gather(1, a[:, None]).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.net.parameters()), self.tau)
        return loss.item()


torch.manual_seed(13)
agent = DoubleDQN(nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3)))
for it in range(20):
    s, s2 = torch.randn(32, 4), torch.randn(32, 4)
    a, done = torch.randint(0, 3, (32,)), (torch.rand(32) < 0.1).float()
    value = agent.learn(s, a, s.gather(1, a[:, None]).squeeze(1), s2, done)
print(value)
