from collections import defaultdict

import torch
from torch import nn

torch.manual_seed(0)


class Lookahead:
    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha = optimizer, k, alpha
        self.counter = 0
        self.slow = defaultdict(dict)
        for group in optimizer.param_groups:
            for p in group["params"]:
                self.slow[p] = p.detach().clone()

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.optimizer.step()
        self.counter += 1
        if self.counter % self.k == 0:
            for group in self.param_groups:
                for p in group["params"]:
                    slow = self.slow[p]
                    slow += self.alpha * (p.data - slow)
                    p.data.copy_(slow)


model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = Lookahead(torch.optim.Adam(model.parameters(), lr=1e-2), k=4)
x = torch.linspace(-1, 1, 64).view(16, 4)
y = torch.sin(3 * x.sum(1, keepdim=True))
history = []
for it in range(16):
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.detach())
print(torch.stack(history))
