# /// case
# title = "OneCycleLR is given the number of epochs but stepped per batch"
# category = "optimizer"
# kind = "scheduler-wrong-total-steps"
# kinds_also_ok = ["scheduler-steps-exceeded", "scheduler-stepped-per-batch"]
# severity = "error"
# names = ["OneCycleLR", "total_steps"]
# symptom = "the scheduler raises when its steps are used up"
# raises = "ValueError"
# raises_message = "Tried to step"
# cause = "total_steps is counted in scheduler steps, here batches"
# fix = "epochs times batches"
# evidence = [
#     { url = "https://github.com/ScrollPrize/villa/pull/1495", title = "OneCycleLR is given the number of epochs but stepped per batch" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class TrainConfig:
    epochs: int = 4
    batch_size: int = 12
    max_lr: float = 0.05
    weight_decay: float = 1e-2


class Regressor(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inp, self.out = nn.Linear(n, 24), nn.Linear(24, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.inp(x))).squeeze(-1)


def train(cfg, x, y):
    model = Regressor(x.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.max_lr / 10, weight_decay=cfg.weight_decay)
    steps_per_epoch = -(-len(x) // cfg.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=cfg.max_lr, total_steps=cfg.epochs  #- here
#+         optimizer, max_lr=cfg.max_lr, total_steps=cfg.epochs * steps_per_epoch
    )
    for epoch in range(cfg.epochs):
        order = torch.randperm(len(x))
        for i in range(steps_per_epoch):
            rows = order[i * cfg.batch_size:(i + 1) * cfg.batch_size]
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()  #! also
        print(epoch, loss.item(), optimizer.param_groups[0]["lr"])
    return model


torch.manual_seed(66)
x = torch.randn(70, 5)
model = train(TrainConfig(), x, x.abs().max(dim=1).values)
