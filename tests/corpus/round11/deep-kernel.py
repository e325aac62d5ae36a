# /// case
# title = "Early stopping keeps every validation score with its graph"
# category = "retention"
# kind = "validation-loss-keeps-graph"
# kinds_also_ok = ["graph-retained", "loss-history-not-detached", "memory-grows", "missing-no-grad", "missing-item"]
# severity = "warning"
# names = ["evaluate", "scores", "monitor"]
# symptom = "each validation score in the history holds the whole graph of its Gaussian process, and memory grows"
# symptom_check = "any(isinstance(s, torch.Tensor) and s.grad_fn is not None for s in monitor.scores)"
# cause = "evaluate() runs with grad enabled and returns the loss tensor, which the monitor stores."
# fix = "return a number"
# ///
import copy
import math

import torch
from torch import nn


class DeepKernelGP(nn.Module):
    def __init__(self, inputs, features=3):
        super().__init__()
        self.extract = nn.Sequential(nn.Linear(inputs, 24), nn.Tanh(), nn.Linear(24, features))
        self.log_length = nn.Parameter(torch.zeros(features))
        self.log_signal = nn.Parameter(torch.tensor(0.0))
        self.log_noise = nn.Parameter(torch.tensor(-2.0))

    def kernel(self, a, b):
        a, b = self.extract(a) / self.log_length.exp(), self.extract(b) / self.log_length.exp()
        squared = a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T
        return (2 * self.log_signal).exp() * torch.exp(-0.5 * squared.clamp(min=0))

    def factor(self, x):
        noise = (2 * self.log_noise).exp() + 1e-4
        return torch.linalg.cholesky(self.kernel(x, x) + noise * torch.eye(len(x)))

    def negative_evidence(self, x, y):
        chol = self.factor(x)
        alpha = torch.cholesky_solve(y[:, None], chol).squeeze(1)
        return (0.5 * y @ alpha + chol.diagonal().log().sum()) / len(x) + 0.5 * math.log(2 * math.pi)

    def posterior(self, x, y, query):
        chol = self.factor(x)
        cross = self.kernel(x, query)
        mean = cross.T @ torch.cholesky_solve(y[:, None], chol).squeeze(1)
        half = torch.linalg.solve_triangular(chol, cross, upper=False)
        variance = (2 * self.log_signal).exp() - half.square().sum(0) + (2 * self.log_noise).exp()
        return mean, variance.clamp(min=1e-5)


class PlateauMonitor:
    def __init__(self, patience):
        self.patience, self.waited = patience, 0
        self.best, self.weights, self.scores = None, None, []

    def __call__(self, score, model):
        self.scores.append(score)  #! also
        if self.best is None or score < self.best - 1e-4:
            self.best, self.waited = score, 0  #! also
            self.weights = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


def evaluate(model, train, held_out):  #! also
    mean, variance = model.posterior(*train, held_out[0])
    squared = (held_out[1] - mean).square()
    return (0.5 * variance.log() + 0.5 * squared / variance).mean()  #- here
#+     return (0.5 * variance.log() + 0.5 * squared / variance).mean().item()


def friedman(count):
    x = torch.rand(count, 5)
    y = torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 2 * (x[:, 2] - 0.5).square() + x[:, 3] + 0.1 * torch.randn(count)
    return x, (y - 1.3) / 0.6


torch.manual_seed(27)
train, held_out = friedman(80), friedman(40)
model = DeepKernelGP(5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
monitor = PlateauMonitor(patience=15)
for epoch in range(150):
    loss = model.negative_evidence(*train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if monitor(evaluate(model, train, held_out), model):  #! also
        break
model.load_state_dict(monitor.weights)
print(f"stopped at {epoch}, evidence {-loss.item():.3f}, best held-out score {float(monitor.best):.3f}")
