# /// case
# title = "The parameter generator given to clip_grad_norm_ was already consumed by the optimizer"
# category = "gradient-clipping"
# kind = "clip-without-effect"
# severity = "warning"
# names = ["weights"]
# difficulty = "hard"
# symptom = "UserWarning (parameters is an empty generator; older torch is silent); the used gradients are never clipped"
# symptom_check = "max(used) > LIMIT * 1.01"
# warns = "is an empty generator, no gradient clipping will occur"
# cause = "model.parameters() is a generator; the optimizer exhausts it"
# fix = "weights = list(model.parameters())"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/148259" },
#     { url = "https://github.com/pytorch/torchtitan/pull/1258" },
#     { url = "https://github.com/PixArt-alpha/PixArt-alpha/pull/160" },
# ]
# ///
"""Sunspot-like series forecasting with a two-layer GRU."""
import math

import torch
from torch import nn

LIMIT = 0.25


def series(n):
    t = torch.arange(n, dtype=torch.float32)
    return torch.sin(t * 2 * math.pi / 11) * 40 + torch.sin(t * 2 * math.pi / 80) * 20 + 50


class Forecaster(nn.Module):
    def __init__(self, hidden=24, horizon=4):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, num_layers=2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, horizon))

    def forward(self, window):
        out, _ = self.rnn(window.unsqueeze(-1))
        return self.head(out[:, -1])


def windows(values, length, horizon, n):
    start = torch.randint(0, len(values) - length - horizon, (n,))
    x = torch.stack([values[s:s + length] for s in start])
    y = torch.stack([values[s + length:s + length + horizon] for s in start])
    return x, y


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total += value
        self.count += 1

    def mean(self):
        return self.total / max(1, self.count)


def grad_norm(module):
    return torch.stack([p.grad.norm() for p in module.parameters()]).norm().item()


torch.manual_seed(3)
values = series(400)
values = (values - values.mean()) / values.std() * 4
model = Forecaster()
weights = model.parameters()  #- here
#+ weights = list(model.parameters())
optimizer = torch.optim.Adam(weights, lr=2e-3)  #! also
criterion = nn.MSELoss()
used = []

for epoch in range(3):
    meter = Meter()
    for _ in range(4):
        x, y = windows(values, 20, 4, 16)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, LIMIT)  #! here
        used.append(grad_norm(model))
        optimizer.step()
        meter.add(loss.item())
    print(epoch, meter.mean(), max(used))
