import torch
import torch.nn as nn
import torch.nn.functional as F


def block(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU())


class SimSiam(nn.Module):
    def __init__(self, fields=20, width=24):
        super().__init__()
        self.encoder = nn.Sequential(block(fields, 32), nn.Linear(32, width), nn.BatchNorm1d(width, affine=False))
        self.predictor = nn.Sequential(block(width, 8), nn.Linear(8, width))

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        pa, pb = self.predictor(za), self.predictor(zb)
        return -(F.cosine_similarity(pa, zb.detach()).mean() + F.cosine_similarity(pb, za.detach()).mean()) / 2


def augment(x):
    return x * (torch.rand_like(x) > 0.15) + 0.1 * torch.randn_like(x)


torch.manual_seed(23)
data = torch.randn(96, 6) @ torch.randn(6, 20)
model = SimSiam()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for epoch in range(4):
    for rows in torch.randperm(96).split(32):
        loss = model(augment(data[rows]), augment(data[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        spread = F.normalize(model.encoder(data), dim=1).std(0).mean().item()
    print(epoch, loss.item(), spread)
