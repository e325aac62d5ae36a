# /// case
# title = "EMA weights stay in the model after validation"
# category = "optimizer-wiring"
# kind = "parameters-overwritten-outside-optimizer"
# severity = "warning"
# severity_by_writer = "error"
# names = ["ema", "restore", "model"]
# difficulty = "hard"
# symptom = "Training is thrown back to the averaged weights after each validation; progress is slow, no message."
# symptom_check = "all(torch.equal(v, ema.shadow[k]) for k, v in model.named_parameters())"
# cause = "validate() loads the EMA shadow into the live model and never restores the live weights, so the optimizer goes on from the average."
# fix = "Call ema.restore(model) after validation."
# evidence = [{ url = "https://github.com/devilismyfriend/StableTuner/pull/126" }, { url = "https://github.com/YU1ut/MixMatch-pytorch/pull/23" }]
# ///
"""Regression of a spiral with exponential moving average of the weights."""
from dataclasses import dataclass, field

import torch
from torch import nn


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.named_parameters()}
        self.backup = {}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.named_parameters():
            self.shadow[k].lerp_(v, 1 - self.decay)

    @torch.no_grad()
    def apply(self, model):
        for k, v in model.named_parameters():
            self.backup[k] = v.detach().clone()
            v.copy_(self.shadow[k])  #! here

    @torch.no_grad()
    def restore(self, model):
        for k, v in model.named_parameters():
            v.copy_(self.backup[k])
        self.backup = {}


@dataclass
class Run:
    lr: float = 5e-3
    decay: float = 0.99
    epochs: int = 6
    steps: int = 20
    log: list = field(default_factory=list)


def batch(n):
    t = torch.rand(n, 1) * 6
    return t, torch.cat([t * t.cos(), t * t.sin()], 1) / 3


@torch.no_grad()
def validate(model, ema):
    ema.apply(model)  #! here
    model.eval()
    t, target = batch(256)
    score = nn.functional.mse_loss(model(t), target).item()
    model.train()  #! also
#+     ema.restore(model)
    return score  #! here


def main(cfg):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))
    ema = EMA(model, cfg.decay)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        for _ in range(cfg.steps):
            t, target = batch(64)
            loss = nn.functional.mse_loss(model(t), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(model)
        cfg.log.append((loss.item(), validate(model, ema)))  #! also
    return model, ema


cfg = Run()
model, ema = main(cfg)
for train_loss, val_loss in cfg.log:
    print(f"{train_loss:.4f} {val_loss:.4f}")
