import copy

import torch
from torch import nn

torch.manual_seed(13)


def adapt(model, x, y, steps=2, lr=0.1):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        inner.zero_grad()
        nn.functional.mse_loss(learner(x), y).backward()
        inner.step()
    return learner


def task(n=10):
    scale, phase = torch.rand(1) * 2 + 0.5, torch.rand(1) * 3
    x = torch.rand(2 * n, 1) * 6 - 3
    y = scale * torch.sin(x + phase)
    return x[:n], y[:n], x[n:], y[n:]


model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
meta = torch.optim.Adam(model.parameters(), lr=2e-3)
for it in range(6):
    # first-order approximation: the query gradient at the adapted weights moves the initial ones
    meta.zero_grad()
    total = 0.0
    for _ in range(3):
        xs, ys, xq, yq = task()
        learner = adapt(model, xs, ys)
        loss = nn.functional.mse_loss(learner(xq), yq)
        grads = torch.autograd.grad(loss, list(learner.parameters()))
        for p, g in zip(model.parameters(), grads):
            p.grad = g / 3 if p.grad is None else p.grad + g / 3
        total += loss.item()
    meta.step()
    print(it, total / 3)
