import copy

import torch
from torch import nn

torch.manual_seed(10)


class Ema:
    def __init__(self, model, decay=0.95):
        self.module, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.module.parameters(), model.parameters()):
            e.mul_(self.decay).add_(p, alpha=1 - self.decay)
        for e, b in zip(self.module.buffers(), model.buffers()):
            e.copy_(b)


model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
ema, optimizer = Ema(model), torch.optim.Adam(model.parameters(), lr=5e-3)
x = torch.randn(128, 6)
y = (x.sum(1) > 0).long()
for epoch in range(4):
    model.train()
    for idx in torch.randperm(96).split(24):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
    with torch.no_grad():
        print(epoch, (ema.module(x[96:]).argmax(1) == y[96:]).float().mean().item())
