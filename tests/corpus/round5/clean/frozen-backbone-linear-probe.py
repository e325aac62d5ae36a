import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
backbone.requires_grad_(False)
backbone.eval()
probe = nn.Linear(32, 4)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.1, momentum=0.9)
for epoch in range(3):
    probe.train()
    total = 0.0
    for _ in range(5):
        x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 4, (16,))
        with torch.no_grad():
            features = backbone(x)
        loss = nn.functional.cross_entropy(probe(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / 5)
