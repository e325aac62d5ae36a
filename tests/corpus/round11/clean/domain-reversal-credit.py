import math

import torch
from torch import nn
import torch.nn.functional as F


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.strength * grad_output, None


class CreditModel(nn.Module):
    def __init__(self, features, dim=24):
        super().__init__()
        self.extract = nn.Sequential(nn.Linear(features, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())
        self.default = nn.Linear(dim, 1)
        self.country = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        features = self.extract(x)
        reversed_features = ReverseGradient.apply(features, strength)
        return self.default(features).squeeze(-1), self.country(reversed_features).squeeze(-1)


class StrengthSchedule:
    def __init__(self, total, gamma=8.0, ceiling=1.0):
        self.total, self.gamma, self.ceiling = total, gamma, ceiling

    def __getitem__(self, step):
        return self.ceiling * (2.0 / (1.0 + math.exp(-self.gamma * step / self.total)) - 1.0)


class Portfolio:
    def __init__(self, offset):
        self.offset = offset

    def applicants(self, count):
        x = torch.randn(count, 8)
        x[:, 5:] += self.offset
        risk = x[:, 0] - 0.8 * x[:, 1] + 0.5 * x[:, 2] * x[:, 3]
        return x, torch.bernoulli(torch.sigmoid(1.5 * risk))


def step_losses(model, labelled, unlabelled, strength):
    x, defaulted = labelled
    risk, here = model(x, strength)
    _, there = model(unlabelled, strength)
    domain = torch.cat([here, there])
    origin = torch.cat([torch.zeros_like(here), torch.ones_like(there)])
    return F.binary_cross_entropy_with_logits(risk, defaulted), F.binary_cross_entropy_with_logits(domain, origin)


torch.manual_seed(52)
home, abroad = Portfolio(0.0), Portfolio(1.2)
model = CreditModel(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
schedule = StrengthSchedule(total=200)
for step in range(200):
    task, domain = step_losses(model, home.applicants(64), abroad.applicants(64)[0], schedule[step])
    optimizer.zero_grad()
    (task + 0.3 * domain).backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1} task {task.item():.4f} domain {domain.item():.4f}")
with torch.no_grad():
    x, defaulted = abroad.applicants(1000)
    risk, _ = model(x, 0.0)
    print(f"abroad accuracy {(risk > 0).eq(defaulted.bool()).float().mean().item():.3f}")
