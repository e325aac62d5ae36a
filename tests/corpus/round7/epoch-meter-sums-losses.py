# /// case
# title = "The epoch meter adds loss tensors"
# category = "retention"
# kind = "graph-kept-alive"
# kinds_also_ok = ["accumulates-loss-tensor", "retained-graph"]
# severity = "warning"
# names = ["meters", "update"]
# symptom = "the running total holds the graph of each batch"
# symptom_check = "any(torch.is_tensor(m.total) and m.total.grad_fn is not None for m in meters.values())"
# cause = "the sum is made of tensors with a graph"
# fix = "item()"
# ///
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n  #! also
        self.count += n

    @property
    def average(self):
        return self.total / max(1, self.count)


class TwoHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 24), nn.ReLU())
        self.cls, self.reg = nn.Linear(24, 3), nn.Linear(24, 1)

    def forward(self, x):
        h = self.trunk(x)
        return {"cls": self.cls(h), "reg": self.reg(h).squeeze(1)}


torch.manual_seed(20)
x = torch.randn(60, 8)
targets = {"cls": torch.randint(0, 3, (60,)), "reg": x.mean(1)}
model = TwoHead()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    meters = defaultdict(Meter)
    for rows in torch.randperm(60).split(12):
        out = model(x[rows])
        parts = {
            "cls": F.cross_entropy(out["cls"], targets["cls"][rows]),
            "reg": F.mse_loss(out["reg"], targets["reg"][rows]),
        }
        optimizer.zero_grad()
        sum(parts.values()).backward()
        optimizer.step()
        for name, value in parts.items():
            meters[name].update(value, len(rows))  #- here
#+             meters[name].update(value.item(), len(rows))
    print(epoch, {k: round(float(m.average), 4) for k, m in meters.items()})
