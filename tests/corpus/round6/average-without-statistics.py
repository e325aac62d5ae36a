# /// case
# title = "The averaged model keeps the first batch statistics"
# category = "identity"
# kind = "ema-misses-buffers"
# kinds_also_ok = ["buffers-not-copied"]
# severity = "warning"
# names = ["buffers", "ModelEMA"]
# symptom = "the averaged model normalises with mean 0 and variance 1"
# symptom_check = "bool((ema.module[1].running_mean == 0).all())"
# cause = "only parameters are averaged"
# fix = "copy the buffers"
# evidence = [
#     { url = "https://github.com/CuriousAI/mean-teacher/issues/9", title = "EMA of BatchNorm Layer" },
#     { url = "https://github.com/FlyreelAI/sesemi/issues/36", title = "Batch norm weights not updated when using EMA in fully supervised mode" },
# ]
# ///
import copy

import torch
import torch.nn as nn


class ModelEMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema, p in zip(self.module.parameters(), model.parameters()):  #! also
            ema.lerp_(p, 1 - self.decay)  #! here
#+         for ema, b in zip(self.module.buffers(), model.buffers()):
#+             ema.copy_(b)


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
