import torch
import torch.nn as nn
import torch.nn.functional as F


class Probe(nn.Module):
    def __init__(self, backbone, width, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(width, classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


def random_features(fields, width):
    return nn.Sequential(nn.Linear(fields, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.5))


torch.manual_seed(5)
x = torch.randn(120, 9)
y = (x[:, 0] > x[:, 1]).long()
probe = Probe(random_features(9, 40), 40, 2)
optimizer = torch.optim.SGD(probe.head.parameters(), lr=0.2, momentum=0.9)
for epoch in range(5):
    probe.train()
    for rows in torch.randperm(120).split(40):
        loss = F.cross_entropy(probe(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    probe.eval()
    with torch.no_grad():
        print(epoch, (probe(x).argmax(1) == y).float().mean().item())
