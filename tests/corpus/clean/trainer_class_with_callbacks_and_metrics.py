from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    lr: float = 1e-2
    epochs: int = 3
    batch_size: int = 16
    grad_clip: float = 1.0
    log: list = field(default_factory=list)


class Meter:
    def __init__(self):
        self.sum = self.count = 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


class Trainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.8)
        self.criterion = nn.CrossEntropyLoss()

    def run_batch(self, x, y):
        logits = self.model(x)
        return self.criterion(logits, y), logits

    def train_epoch(self, loader):
        self.model.train()
        meter = Meter()
        for x, y in loader:
            loss, _ = self.run_batch(x, y)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_clip)
            self.optimizer.step()
            meter.update(loss.item(), len(x))
        self.scheduler.step()
        return meter.avg

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        meter, hits = Meter(), Meter()
        for x, y in loader:
            loss, logits = self.run_batch(x, y)
            meter.update(loss.item(), len(x))
            hits.update((logits.argmax(1) == y).float().mean().item(), len(x))
        return meter.avg, hits.avg

    def fit(self, train, val):
        for epoch in range(self.cfg.epochs):
            row = (epoch, self.train_epoch(train), *self.evaluate(val))
            self.cfg.log.append(row)
            print("%d train %.3f val %.3f acc %.3f" % row)


torch.manual_seed(0)
X = torch.randn(96, 8)
Y = (X[:, :2].sum(1) > 0).long()
ds = [TensorDataset(X[:64], Y[:64]), TensorDataset(X[64:], Y[64:])]
cfg = Config()
Trainer(nn.Sequential(nn.Linear(8, 24), nn.Dropout(0.2), nn.ReLU(), nn.Linear(24, 2)), cfg).fit(
    DataLoader(ds[0], cfg.batch_size, shuffle=True), DataLoader(ds[1], 32)
)
