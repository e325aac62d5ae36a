# /// case
# title = "The log-determinant of a normalising flow enters with the wrong sign"
# category = "loss"
# kind = "sign-error-in-loss"
# kinds_also_ok = ["wrong-sign", "log-det-sign"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["log_prob", "log_det"]
# symptom = "the flow spreads out instead of concentrating: the log-scales shrink the wrong way"
# symptom_check = "flow(data)[1].mean().item() < start - 0.5"
# cause = "For z = f(x) the density is log p(z) + log|det df/dx|, and log_prob subtracts the determinant."
# fix = "add it"
# ///
import math

import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, flip: bool):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        log_scale, shift = self.net(a).chunk(2, dim=1)
        log_scale = 2 * torch.tanh(log_scale / 2)
        b = b * log_scale.exp() + shift
        return torch.cat([b, a] if self.flip else [a, b], dim=1), log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(bool(i % 2)) for i in range(layers))

    def forward(self, x):
        log_det = torch.zeros(len(x))
        for layer in self.layers:
            x, part = layer(x)
            log_det = log_det + part
        return x, log_det

    def log_prob(self, x):
        z, log_det = self(x)
        base = -0.5 * (z ** 2).sum(1) - math.log(2 * math.pi)
        return base - log_det  #- here
#+         return base + log_det


torch.manual_seed(47)
angle = torch.rand(200) * math.pi
data = 0.4 * torch.stack([angle.cos(), angle.sin()], dim=1) + 0.02 * torch.randn(200, 2)
flow = Flow()
start = flow(data)[1].mean().item()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
for step in range(25):
    loss = -flow.log_prob(data[torch.randperm(200)[:64]]).mean()  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(start, loss.item())
