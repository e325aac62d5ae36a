import torch
from torch import nn

torch.manual_seed(15)
backbone = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
probe = nn.Linear(16, 3)
for p in backbone.parameters():
    p.requires_grad = False
kept = backbone[1].running_mean.clone()
model = nn.Sequential(backbone, probe)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    backbone.eval()
    for _ in range(4):
        x, y = torch.randn(16, 8) + 2, torch.randint(0, 3, (16,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
