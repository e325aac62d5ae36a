import copy
import io
import math
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class OptimConfig:
    lr: float = 3e-3
    weight_decay: float = 0.01
    warmup: int = 3
    clip: float = 1.0


@dataclass
class TrainConfig:
    width: int = 32
    epochs: int = 3
    batch: int = 16
    accumulate: int = 2
    ema: float = 0.9
    optim: OptimConfig = field(default_factory=OptimConfig)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(8, cfg.width)
        self.blocks = nn.ModuleList(Block(cfg.width) for _ in range(2))
        self.head = nn.Linear(cfg.width, 3)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = Net(cfg)
        self.shadow = copy.deepcopy(self.model).eval().requires_grad_(False)
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        plain = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": decay, "weight_decay": cfg.optim.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=cfg.optim.lr)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._rate)
        self.best = math.inf
        self.kept = io.BytesIO()

    def _rate(self, step):
        if step < self.cfg.optim.warmup:
            return step / self.cfg.optim.warmup
        return 0.5 * (1 + math.cos(math.pi * min(1.0, step / 30)))

    @torch.no_grad()
    def _average(self):
        for ours, theirs in zip(self.shadow.parameters(), self.model.parameters()):
            ours.lerp_(theirs, 1 - self.cfg.ema)

    def _epoch(self, loader):
        self.model.train()
        running = 0.0
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(self.model(x), y, label_smoothing=0.1) / self.cfg.accumulate
            loss.backward()
            running += loss.item()
            if (i + 1) % self.cfg.accumulate == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.optim.clip)
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad(set_to_none=True)
                self._average()
        return running / len(loader)

    @torch.inference_mode()
    def _evaluate(self, loader):
        self.shadow.eval()
        losses = [nn.functional.cross_entropy(self.shadow(x), y, reduction="sum") for x, y in loader]
        return torch.stack(losses).sum().item() / len(loader.dataset)

    def fit(self, train, valid):
        for epoch in range(self.cfg.epochs):
            running, held_out = self._epoch(train), self._evaluate(valid)
            if held_out < self.best:
                self.best = held_out
                self.kept.seek(0)
                torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, self.kept)
            print(epoch, f"{running:.3f} {held_out:.3f}")
        self.kept.seek(0)
        self.model.load_state_dict(torch.load(self.kept)["model"])


torch.manual_seed(0)
x = torch.randn(128, 8)
y = x[:, :3].argmax(1)
cfg = TrainConfig()
loaders = [DataLoader(TensorDataset(x[a:b], y[a:b]), batch_size=cfg.batch, shuffle=a == 0) for a, b in ((0, 96), (96, 128))]
Trainer(cfg).fit(*loaders)
