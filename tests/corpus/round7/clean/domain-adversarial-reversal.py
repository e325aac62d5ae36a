import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
        self.label, self.domain = nn.Linear(24, 3), nn.Linear(24, 1)

    def forward(self, x, strength=1.0):
        h = self.features(x)
        return self.label(h), self.domain(Reverse.apply(h, strength)).squeeze(1)


torch.manual_seed(110)
source, target = torch.randn(90, 6), torch.randn(90, 6) + 1
y = source[:, :3].argmax(1)
model = DANN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    strength = 2 / (1 + math.exp(-10 * epoch / 4)) - 1
    for rows in torch.randperm(90).split(30):
        logits, is_source = model(source[rows], strength)
        _, is_target = model(target[rows], strength)
        domain = torch.cat([is_source, is_target])
        truth = torch.cat([torch.ones(len(rows)), torch.zeros(len(rows))])
        loss = F.cross_entropy(logits, y[rows]) + F.binary_cross_entropy_with_logits(domain, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
