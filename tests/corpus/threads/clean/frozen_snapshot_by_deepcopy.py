import copy

import torch
from torch import nn

torch.manual_seed(14)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
snapshots = []
for epoch in range(3):
    for _ in range(4):
        x = torch.randn(16, 4)
        opt.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        opt.step()
    snapshots.append(copy.deepcopy(model).eval().requires_grad_(False))
with torch.no_grad():
    x = torch.randn(8, 4)
    print(torch.stack([m(x) for m in snapshots]).std(0).mean().item())
