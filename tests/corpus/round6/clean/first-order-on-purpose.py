import copy

import torch
import torch.nn as nn


def task(n=20):
    a, b = torch.rand(2) * 4
    x = torch.rand(2 * n, 1) * 6 - 3
    y = a * torch.sin(x + b)
    return (x[:n], y[:n]), (x[n:], y[n:])


torch.manual_seed(8)
model = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1))
meta = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(6):
    meta.zero_grad()
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    for _ in range(4):
        fast = copy.deepcopy(model)
        inner = torch.optim.SGD(fast.parameters(), lr=0.01)
        (x, y), (qx, qy) = task()
        for _ in range(3):
            inner.zero_grad()
            nn.functional.mse_loss(fast(x), y).backward()
            inner.step()
        inner.zero_grad()
        query = nn.functional.mse_loss(fast(qx), qy)
        query.backward()
        for p, f in zip(model.parameters(), fast.parameters()):
            p.grad += f.grad / 4
    meta.step()
    print(it, query.item())
