import copy

import torch
from torch import nn

torch.manual_seed(14)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
for it in range(8):
    w = torch.randn(2, 1)
    learner = copy.deepcopy(model)
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.05)
    for _ in range(4):
        x = torch.randn(20, 2)
        loss = (learner(x) - torch.tanh(x @ w)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for p, q in zip(model.parameters(), learner.parameters()):
            p.add_(q - p, alpha=0.3)
    print(it, loss.item())
