# /// case
# title = "Clipping is given the generator that the optimizer has already used up"
# category = "optimizer"
# kind = "exhausted-parameter-generator"
# kinds_also_ok = ["clip-on-empty-generator", "gradient-clipping-without-effect", "generator-consumed"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["trainable", "clip_grad_norm_", "parameters"]
# symptom = "the norm reported by clipping is always zero and no gradient is ever clipped"
# symptom_check = "all(norm == 0 for norm in history.norms)"
# cause = "flow.parameters() is a generator; Adam exhausts it, and clip_grad_norm_ gets an empty one."
# fix = "make a list of the parameters"
# ///
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import nn


class Config(NamedTuple):
    layers: int = 4
    hidden: int = 24
    lr: float = 5e-3
    max_norm: float = 0.5
    steps: int = 150


@dataclass
class History:
    nll: list = field(default_factory=list)
    norms: list = field(default_factory=list)

    def add(self, nll, norm):
        self.nll.append(nll.item())
        self.norms.append(norm.item())


class Coupling(nn.Module):
    def __init__(self, hidden, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.flip(1).chunk(2, 1) if self.flip else x.chunk(2, 1)
        log_scale, shift = self.net(a).chunk(2, 1)
        log_scale = 2 * torch.tanh(log_scale)
        b = b * log_scale.exp() + shift
        y = torch.cat([b, a], 1) if self.flip else torch.cat([a, b], 1)
        return y, log_scale.squeeze(1)


class RealNVP(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(cfg.hidden, flip=i % 2 == 1) for i in range(cfg.layers))

    def log_prob(self, x):
        log_det = torch.zeros(len(x))
        for coupling in self.couplings:
            x, term = coupling(x)
            log_det = log_det + term
        return log_det - 0.5 * x.square().sum(1) - math.log(2 * math.pi)


def heavy_tailed_moons(count):
    angle = torch.rand(count) * math.pi
    upper = torch.rand(count) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    outliers = torch.distributions.StudentT(2.5).sample((count, 2))
    return torch.stack([x, y], 1) + 0.1 * outliers


torch.manual_seed(4)
cfg, history = Config(), History()
samples = heavy_tailed_moons(1024)
flow = RealNVP(cfg)
trainable = flow.parameters()  #- here
#+ trainable = list(flow.parameters())
optimizer = torch.optim.Adam(trainable, lr=cfg.lr)  #! also
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
for step in range(cfg.steps):
    batch = samples[torch.randperm(len(samples))[:128]]
    nll = -flow.log_prob(batch).mean()
    optimizer.zero_grad()
    nll.backward()
    norm = nn.utils.clip_grad_norm_(trainable, cfg.max_norm)  #! also
    optimizer.step()
    warmup.step()
    history.add(nll, norm)
print(f"nll {history.nll[0]:.3f} -> {history.nll[-1]:.3f}")
print(f"largest gradient norm {max(history.norms):.3f}")
