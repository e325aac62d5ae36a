import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(1)


class Stochastic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.gate = nn.Linear(6, 2)
        self.experts = nn.ModuleList(nn.Linear(6, 1) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < 0.3:
                continue
            x = x + torch.relu(layer(x))
        weight = self.gate(x).softmax(-1)
        return sum(weight[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


net = Stochastic()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for x in torch.randn(10, 12, 6):
    opt.zero_grad()
    loss = (net(x).squeeze(1) - x[:, 0]).pow(2).mean()
    loss.backward()
    opt.step()
print(loss.item())
