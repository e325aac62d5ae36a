import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def augment(x):
    return x * (1 + 0.1 * torch.randn(x.size(0), 1)) + 0.2 * torch.randn_like(x)


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(inplace=True), nn.Linear(32, 16))
        self.projector = nn.Sequential(nn.Linear(16, 16), nn.ReLU(inplace=True), nn.Linear(16, 8))

    def forward(self, x):
        return self.projector(self.encoder(x))


def contrastive_logits(features, temperature=0.2):
    n = features.shape[0] // 2
    labels = torch.cat([torch.arange(n) for _ in range(2)])
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity = features @ features.T
    mask = torch.eye(2 * n, dtype=torch.bool)
    labels = labels[~mask].view(2 * n, -1)
    similarity = similarity[~mask].view(2 * n, -1)
    positives = similarity[labels.bool()].view(2 * n, -1)
    negatives = similarity[~labels.bool()].view(2 * n, -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return logits, torch.zeros(2 * n, dtype=torch.long)


model = SimCLR()
optimizer = torch.optim.Adam(model.parameters(), 3e-4, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3, eta_min=0)
data = torch.randn(48, 10)
for epoch in range(3):
    for images in data.split(16):
        logits, labels = contrastive_logits(model(torch.cat([augment(images), augment(images)])))
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    top1 = (logits.argmax(1) == labels).float().mean()
    print(epoch, loss.item(), top1.item())

classifier = nn.Linear(16, 2)
probe = torch.optim.SGD(classifier.parameters(), lr=0.1)
model.eval()
with torch.no_grad():
    feats = model.encoder(data)
for _ in range(5):
    probe_loss = F.cross_entropy(classifier(feats), (data[:, 0] > 0).long())
    probe.zero_grad()
    probe_loss.backward()
    probe.step()
print(probe_loss.item())
