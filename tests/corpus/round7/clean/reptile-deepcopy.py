import copy

import torch
import torch.nn as nn


def sample_task():
    slope, shift = torch.randn(2)
    x = torch.rand(20, 1) * 4 - 2
    return x, slope * x.abs() + shift


def inner_training(model, x, y, steps=4, lr=0.02):
    learner = copy.deepcopy(model)
    optimizer = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        loss = (learner(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return learner, loss.item()


torch.manual_seed(119)
meta = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
outer = torch.optim.SGD(meta.parameters(), lr=1.0)
for iteration in range(6):
    outer.zero_grad()
    results = [inner_training(meta, *sample_task()) for _ in range(3)]
    for learner, _ in results:
        for p, q in zip(meta.parameters(), learner.parameters()):
            step = 0.2 * (p.detach() - q.detach()) / len(results)
            p.grad = step if p.grad is None else p.grad + step
    outer.step()
    print(iteration, sum(loss for _, loss in results) / len(results))
