import copy

import torch
from torch import nn

torch.manual_seed(4)
meta = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
outer = torch.optim.SGD(meta.parameters(), lr=0.1)
for episode in range(4):
    outer.zero_grad()
    for _ in range(3):
        direction = torch.randn(2)
        x = torch.randn(24, 2)
        y = (x @ direction > 0).long()
        clone = copy.deepcopy(meta)
        inner = torch.optim.SGD(clone.parameters(), lr=0.2)
        for _ in range(3):
            loss = nn.functional.cross_entropy(clone(x[:12]), y[:12])
            inner.zero_grad()
            loss.backward()
            inner.step()
        query = nn.functional.cross_entropy(clone(x[12:]), y[12:])
        grads = torch.autograd.grad(query, clone.parameters())
        for p, g in zip(meta.parameters(), grads):
            p.grad = g / 3 if p.grad is None else p.grad + g / 3
    outer.step()
    print(episode, query.item())
