import copy

import torch
from torch import nn
import torch.nn.functional as F


class SensorEncoder(nn.Module):
    def __init__(self, channels, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(channels, 16, 5, padding=2), nn.GELU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, dim)
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class MomentumContrast(nn.Module):
    def __init__(self, encoder, dim, slots=256, momentum=0.99, temperature=0.1):
        super().__init__()
        self.query = encoder
        self.key = copy.deepcopy(encoder)
        for parameter in self.key.parameters():
            parameter.requires_grad = False
        self.momentum, self.temperature = momentum, temperature
        self.register_buffer("queue", F.normalize(torch.randn(slots, dim), dim=-1))
        self.register_buffer("cursor", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def follow(self):
        for key, query in zip(self.key.parameters(), self.query.parameters()):
            key.data.mul_(self.momentum).add_(query.data, alpha=1.0 - self.momentum)

    @torch.no_grad()
    def enqueue(self, keys):
        start = int(self.cursor)
        self.queue[start:start + len(keys)] = keys
        self.cursor.fill_((start + len(keys)) % len(self.queue))

    def forward(self, first, second):
        q = self.query(first)
        with torch.no_grad():
            self.follow()
            k = self.key(second)
        positive = (q * k).sum(-1, keepdim=True)
        negative = q @ self.queue.clone().detach().t()
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
        self.enqueue(k)
        return loss


class Jitter:
    def __init__(self, noise=0.1, drop=0.2):
        self.noise, self.drop = noise, drop

    def __call__(self, x):
        gain = 1.0 + 0.2 * torch.randn(len(x), x.shape[1], 1)
        keep = (torch.rand(len(x), 1, x.shape[2]) > self.drop).float()
        return gain * x * keep + self.noise * torch.randn_like(x)


def machines(count, channels=3, length=32):
    t = torch.arange(length) / length
    frequency = 1.0 + 6.0 * torch.rand(count, channels, 1)
    return torch.sin(6.28 * frequency * t + 6.28 * torch.rand(count, channels, 1))


torch.manual_seed(13)
signals, augment = machines(512), Jitter()
model = MomentumContrast(SensorEncoder(3, 24), 24)
optimizer = torch.optim.SGD(model.query.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for epoch in range(6):
    total = 0.0
    for rows in torch.randperm(512).split(64):
        batch = signals[rows]
        loss = model(augment(batch), augment(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 8:.4f}")
