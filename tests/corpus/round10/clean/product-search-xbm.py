import torch
import torch.nn.functional as F
from torch import nn


class CrossBatchMemory:
    def __init__(self, size, dim):
        self.vectors = torch.zeros(size, dim)
        self.labels = torch.full((size,), -1)
        self.cursor = 0

    def enqueue(self, vectors, labels):
        slots = (self.cursor + torch.arange(len(vectors))) % len(self.labels)
        self.vectors[slots] = vectors.detach()
        self.labels[slots] = labels
        self.cursor = int((slots[-1] + 1) % len(self.labels))

    def read(self):
        valid = self.labels >= 0
        return self.vectors[valid], self.labels[valid]


def contrastive(queries, labels, keys, key_labels, margin=0.4):
    similarity = queries @ keys.T
    same = labels[:, None] == key_labels[None]
    positive = (1 - similarity)[same]
    negative = (similarity - margin)[~same].clamp(min=0)
    active = (negative > 0).sum().clamp(min=1)
    return positive.mean() + negative.sum() / active


def products(n, classes=12, features=24):
    y = torch.arange(n) % classes
    prototypes = torch.randn(classes, features)
    return prototypes[y] + 0.8 * torch.randn(n, features), y


torch.manual_seed(23)
x, y = products(360)
encoder = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 16))
memory = CrossBatchMemory(size=128, dim=16)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3)
losses = []
for step in range(60):
    rows = torch.randint(0, len(x), (32,))
    queries = F.normalize(encoder(x[rows]), dim=-1)
    memory.enqueue(queries, y[rows])
    keys, key_labels = memory.read()
    loss = contrastive(queries, y[rows], torch.cat([queries, keys]), torch.cat([y[rows], key_labels]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"{losses[0]:.3f} -> {losses[-1]:.3f}")
