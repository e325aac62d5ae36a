from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    epochs: int = 3
    micro: int = 6
    group: int = 4
    lr: float = 0.05


def groups(loader, size):
    pending = []
    for batch in loader:
        pending.append(batch)
        if len(pending) == size:
            yield pending
            pending = []
    if pending:
        yield pending


def train(model, loader, config):
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9)
    for epoch in range(config.epochs):
        for group in groups(loader, config.group):
            rows = sum(len(y) for _, y in group)
            for x, y in group:
                loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / rows
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            optimizer.zero_grad()
        print(epoch, loss.item() * rows / len(y))


torch.manual_seed(17)
config = Config()
x = torch.randn(63, 8)
y = (x.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2))
train(model, DataLoader(TensorDataset(x, y), batch_size=config.micro, shuffle=True), config)
