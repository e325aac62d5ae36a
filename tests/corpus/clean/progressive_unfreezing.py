import torch
from torch import nn

torch.manual_seed(0)
stages = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3)])
head = nn.Linear(8, 2)
for stage in stages:
    stage.requires_grad_(False)
opt = torch.optim.Adam(head.parameters(), lr=1e-2)
for epoch in range(4):
    if epoch:
        stage = stages[-epoch]
        stage.requires_grad_(True)
        opt.add_param_group({"params": stage.parameters(), "lr": 1e-2 / 2**epoch})
    for _ in range(3):
        x = torch.randn(16, 8)
        h = x
        for stage in stages:
            h = stage(h)
        loss = nn.functional.cross_entropy(head(h), (x.sum(1) > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
