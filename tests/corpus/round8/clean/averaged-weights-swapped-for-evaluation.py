import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    def update(self):
        for s, p in zip(self.shadow, self.model.parameters()):
            s.lerp_(p.detach(), 1 - self.decay)

    @contextlib.contextmanager
    def applied(self):
        backup = [p.detach().clone() for p in self.model.parameters()]
        self.write(self.shadow)
        try:
            yield
        finally:
            self.write(backup)

    @torch.no_grad()
    def write(self, values):
        for p, v in zip(self.model.parameters(), values):
            p.copy_(v)


torch.manual_seed(19)
model = nn.Sequential(nn.Linear(4, 24), nn.SiLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
average = Average(model, 0.8)
x = torch.randn(100, 4)
y = (x[:, :1] * x[:, 1:2]).tanh() + 0.2 * torch.randn(100, 1)
for epoch in range(5):
    for rows in torch.randperm(80).split(20):
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
    with average.applied(), torch.no_grad():
        print(epoch, loss.item(), F.mse_loss(model(x[80:]), y[80:]).item())
