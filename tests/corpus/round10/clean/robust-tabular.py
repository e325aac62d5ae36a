from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn


@contextmanager
def frozen_statistics(model):
    was = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(was)


class ProjectedAttack:
    def __init__(self, eps=0.2, step=0.08, rounds=4):
        self.eps, self.step, self.rounds = eps, step, rounds

    def __call__(self, model, x, y):
        delta = torch.zeros_like(x)
        with frozen_statistics(model):
            for _ in range(self.rounds):
                delta.requires_grad_(True)
                loss = F.cross_entropy(model(x + delta), y)
                (gradient,) = torch.autograd.grad(loss, delta)
                delta = (delta.detach() + self.step * gradient.sign()).clamp(-self.eps, self.eps)
        return x + delta


def loans(n, features=10):
    x = torch.randn(n, features)
    return x, (1.5 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2] > 0).long()


torch.manual_seed(37)
x, y = loans(480)
model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
attack = ProjectedAttack()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
history = []
for epoch in range(5):
    for rows in torch.randperm(len(x)).split(80):
        optimizer.zero_grad()
        hostile = attack(model, x[rows], y[rows])
        loss = 0.5 * F.cross_entropy(model(x[rows]), y[rows]) + 0.5 * F.cross_entropy(model(hostile), y[rows])
        loss.backward()
        optimizer.step()
        history.append(loss.item())
model.eval()
hostile = attack(model, x, y)
with torch.no_grad():
    print("clean", (model(x).argmax(1) == y).float().mean().item(), "robust", (model(hostile).argmax(1) == y).float().mean().item())
print(history[0], history[-1])
