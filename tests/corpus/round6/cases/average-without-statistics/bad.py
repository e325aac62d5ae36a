import copy

import torch
import torch.nn as nn


class ModelEMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema, p in zip(self.module.parameters(), model.parameters()):
            ema.lerp_(p, 1 - self.decay)


torch.manual_seed(22)
model = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
ema = ModelEMA(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
x = 3 + 2 * torch.randn(256, 6)
y = (x.sum(1) > 18).long()
for epoch in range(10):
    model.train()
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
model.eval()
with torch.no_grad():
    own = (model(x).argmax(1) == y).float().mean().item()
    averaged = (ema.module(x).argmax(1) == y).float().mean().item()
print(own, averaged)
