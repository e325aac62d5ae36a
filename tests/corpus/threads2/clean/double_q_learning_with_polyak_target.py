import copy

import torch
from torch import nn


class DoubleDQN:
    def __init__(self, obs=4, acts=3):
        self.online = nn.Sequential(nn.Linear(obs, 24), nn.ReLU(), nn.Linear(24, acts))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = torch.optim.NAdam(self.online.parameters(), lr=3e-3)

    def learn(self, s, a, r, s2, done):
        q = self.online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            y = r + 0.95 * (1 - done) * self.target(s2).gather(1, best).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        slow, fast = self.target.state_dict(), self.online.state_dict()
        self.target.load_state_dict({k: 0.9 * slow[k] + 0.1 * fast[k] for k in slow})
        return loss.item()


torch.manual_seed(38)
agent = DoubleDQN()
for _ in range(8):
    s = torch.randn(20, 4)
    value = agent.learn(s, torch.randint(0, 3, (20,)), s[:, 0], s + 0.1, (torch.rand(20) < 0.1).float())
print(value)
