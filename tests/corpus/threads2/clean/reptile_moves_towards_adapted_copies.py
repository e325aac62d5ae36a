import copy

import torch
from torch import nn

torch.manual_seed(16)
meta = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))


def inner(net, x, y, steps=4, lr=0.05):
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(steps):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    return loss.item()


for it in range(6):
    phase, x = 3 * torch.rand(1), torch.rand(20, 1) * 4 - 2
    learner = copy.deepcopy(meta)
    last = inner(learner, x, torch.sin(x + phase))
    with torch.no_grad():
        for m, l in zip(meta.parameters(), learner.parameters()):
            m.add_(l - m, alpha=0.3)
print(last)
