import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def extract(backbone, loader):
    backbone.eval()
    feats, labels = [], []
    for images, y in loader:
        feats.append(backbone(images).flatten(1))
        labels.append(y)
    return torch.cat(feats), torch.cat(labels)


def linear_probe(features, labels, epochs=3, lr=0.05):
    probe = nn.Linear(features.shape[1], int(labels.max()) + 1)
    optimizer = torch.optim.SGD(probe.parameters(), lr=lr)
    for _ in range(epochs):
        for x, y in zip(features.split(16), labels.split(16)):
            logits = probe(x)
            loss = nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return probe, loss.item()


torch.manual_seed(8)
backbone = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
dataset = TensorDataset(torch.rand(48, 3, 10, 10), torch.randint(0, 3, (48,)))
features, labels = extract(backbone, DataLoader(dataset, batch_size=12))
probe, final = linear_probe(features, labels)
print("probe loss", final)
