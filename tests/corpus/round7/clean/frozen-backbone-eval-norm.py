import torch
import torch.nn as nn
import torch.nn.functional as F


class FineTune(nn.Module):
    def __init__(self, backbone, width, classes):
        super().__init__()
        self.backbone = backbone.requires_grad_(False)
        self.head = nn.Linear(width, classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            h = self.backbone(x)
        return self.head(h)


torch.manual_seed(113)
backbone = nn.Sequential(nn.Conv1d(2, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
model = FineTune(backbone, 8, 3)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9, nesterov=True)
x, y = torch.randn(45, 2, 12), torch.randint(0, 3, (45,))
for epoch in range(3):
    model.train()
    for xb, yb in zip(x.split(15), y.split(15)):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, (model(x).argmax(1) == y).float().mean().item())
