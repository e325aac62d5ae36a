# /// case
# title = "The running average of the losses carries the graph of every step"
# category = "retention"
# kind = "loss-accumulated-with-graph"
# kinds_also_ok = ["graph-retained-by-logging", "missing-detach-in-running-average", "memory-leak-loss-history"]
# severity = "warning"
# names = ["meter", "loss", "values"]
# symptom = "memory and the chain behind the averages grow with each step until the process is killed"
# symptom_check = "all(v.grad_fn is not None for v in meter.values.values())"
# cause = "The average is computed from tensors that require gradients, so each new value refers to the graphs of all before."
# fix = "give the meter a detached loss"
# ///
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class SmoothedLosses:
    beta: float = 0.9
    values: dict = field(default_factory=dict)

    def update(self, task, loss):
        previous = self.values.get(task, loss)
        self.values[task] = self.beta * previous + (1 - self.beta) * loss  #! also

    def __str__(self):
        return ", ".join(f"{task}={float(value):.3f}" for task, value in self.values.items())


@dataclass
class Config:
    features: int = 10
    hidden: int = 32
    lr: float = 5e-3
    epochs: int = 8
    batch: int = 50
    weights: dict = field(default_factory=lambda: {"mortality": 1.0, "stay": 0.5})


class SharedBottom(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(cfg.features, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU())
        self.heads = nn.ModuleDict({task: nn.Linear(cfg.hidden, 1) for task in cfg.weights})

    def forward(self, x):
        h = self.trunk(x)
        return {task: head(h).squeeze(-1) for task, head in self.heads.items()}


def cohort(n, d):
    x = torch.randn(n, d)
    risk = x[:, 0] - 0.5 * x[:, 1] * x[:, 2]
    return x, {"mortality": (risk > 0).float(), "stay": risk + 0.1 * torch.randn(n)}


CRITERIA = {"mortality": nn.BCEWithLogitsLoss(), "stay": nn.MSELoss()}


def train(model, x, y, cfg, meter):
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        for rows in torch.randperm(len(x)).split(cfg.batch):
            optimizer.zero_grad()
            outputs, objective = model(x[rows]), 0.0
            for task, criterion in CRITERIA.items():
                loss = criterion(outputs[task], y[task][rows])
                meter.update(task, loss)  #- here
#+                 meter.update(task, loss.detach())
                objective = objective + cfg.weights[task] * loss
            objective.backward()
            optimizer.step()
        print(f"[{epoch}] {meter}")


torch.manual_seed(30)
cfg = Config()
x, y = cohort(300, cfg.features)
model, meter = SharedBottom(cfg), SmoothedLosses()
train(model, x, y, cfg, meter)
