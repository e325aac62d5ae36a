# /// case
# title = "Gradients are clipped while they are still multiplied by the scaler's factor"
# category = "optimizer"
# kind = "clip-before-unscale"
# kinds_also_ok = ["missing-unscale", "clipping-scaled-gradients", "gradient-clipping-wrong-place"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["scaler", "clip_grad_norm_", "unscale_"]
# symptom = "the updates are thousands of times too small and the loss hardly moves"
# symptom_check = "min(e['norm'] for e in log) > 500"
# cause = "The norm that is clipped to 1 contains the loss scale; step then divides the clipped gradients by it."
# fix = "scaler.unscale_(optimizer) before clipping"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass(frozen=True)
class AmpConfig:
    steps: int = 16
    lr: float = 0.05
    max_norm: float = 1.0
    amp_dtype: torch.dtype = torch.bfloat16
    init_scale: float = 2.0 ** 14


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return x + self.second(torch.relu(self.norm(self.first(x))))


class SmallResNet(nn.Module):
    def __init__(self, channels=8, depth=2, classes=4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.Sequential(*(Residual(channels) for _ in range(depth)))
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


def train(model, images, labels, cfg):
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=cfg.init_scale)  #! also
    log = []
    for step in range(cfg.steps):
        rows = torch.randperm(len(images))[:32]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=cfg.amp_dtype):
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        scaler.scale(loss).backward()  #! here
#+         scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), cfg.max_norm)  #! here
        scaler.step(optimizer)  #! also
        scaler.update()
        log.append({"loss": loss.item(), "norm": norm.item()})
    return log


torch.manual_seed(13)
labels = torch.randint(0, 4, (64,))
images = torch.randn(64, 3, 8, 8) + torch.nn.functional.one_hot(labels, 4)[:, :3, None, None]
model = SmallResNet()
log = train(model, images, labels, AmpConfig())
print(log[0], log[-1])
