# /// case
# title = "The adapter of a frozen encoder runs under no_grad with it"
# category = "graph-break"
# kind = "no-grad-around-trainable"
# kinds_also_ok = ["graph-break", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["adapter", "no_grad"]
# symptom = "the adapter receives no gradient, only the head trains"
# symptom_check = "all(p.grad is None for p in model.adapter.parameters()) and model.head.weight.grad is not None"
# cause = "the no_grad block covers the adapter too"
# fix = "run the adapter outside of the block"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    dim: int = 24
    bottleneck: int = 6
    classes: int = 4
    lr: float = 3e-3
    steps: int = 8


class Adapter(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.down = nn.Linear(cfg.dim, cfg.bottleneck)
        self.up = nn.Linear(cfg.bottleneck, cfg.dim)

    def forward(self, x):
        return x + self.up(F.gelu(self.down(x)))


class AdaptedClassifier(nn.Module):
    def __init__(self, encoder, cfg):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.adapter = Adapter(cfg)
        self.head = nn.Linear(cfg.dim, cfg.classes)

    def forward(self, x):
        with torch.no_grad():  #! also
            features = self.encoder(x)
            features = self.adapter(features)  #- here
#+         features = self.adapter(features)
        return self.head(features)


cfg = Config()
torch.manual_seed(2)
encoder = nn.Sequential(nn.Linear(10, cfg.dim), nn.ReLU(), nn.Linear(cfg.dim, cfg.dim))
model = AdaptedClassifier(encoder, cfg)
trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trainable, lr=cfg.lr)
x, y = torch.randn(64, 10), torch.randint(0, cfg.classes, (64,))
for step in range(cfg.steps):
    rows = torch.randint(0, 64, (16,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print("final", loss.item())
