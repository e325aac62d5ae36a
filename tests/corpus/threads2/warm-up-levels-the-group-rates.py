# /// case
# title = "Warm-up brings all groups to the rate of the first"
# category = "optimizer"
# kind = "scheduler-overwrites-group-rates"
# severity = "warning"
# names = ["max_lrs", "WarmupLR", "lr"]
# symptom = "the head trains at the rate of the backbone"
# symptom_check = "rates[0] == rates[1]"
# cause = "[0] takes the rate of the first group for all"
# fix = "one value for each group"
# evidence = [
#     { url = "https://github.com/deepspeedai/DeepSpeed/pull/8171", title = "Fix WarmupLR collapsing multi-group base LRs to group 0's" },
# ]
# ///
import math

import torch
import torch.nn as nn


class WarmupLR:
    """Logarithmic warm-up to the rates that the optimizer was made with."""

    def __init__(self, optimizer, warmup_min_lr=0.0, warmup_max_lr=None, warmup_num_steps=10):
        self.optimizer = optimizer
        if warmup_max_lr is None:
            warmup_max_lr = [group["lr"] for group in optimizer.param_groups][0]  #- here
#+             warmup_max_lr = [group["lr"] for group in optimizer.param_groups]
        self.min_lrs = self._per_group(warmup_min_lr)
        self.max_lrs = self._per_group(warmup_max_lr)  #! also
        self.steps, self.at = max(2, warmup_num_steps), -1
        self.step()

    def _per_group(self, value):
        if isinstance(value, (list, tuple)):
            return list(value)
        return [value] * len(self.optimizer.param_groups)

    def step(self):
        self.at += 1
        gamma = min(1.0, math.log(self.at + 1) / math.log(self.steps))
        for group, low, high in zip(self.optimizer.param_groups, self.min_lrs, self.max_lrs):
            group["lr"] = low + (high - low) * gamma  #! also


torch.manual_seed(57)
backbone = nn.Sequential(nn.Linear(10, 16), nn.ReLU())
head = nn.Linear(16, 2)
optimizer = torch.optim.AdamW(
    [{"params": backbone.parameters(), "lr": 1e-4}, {"params": head.parameters(), "lr": 1e-2}]
)
scheduler = WarmupLR(optimizer, warmup_num_steps=5)
for step in range(8):
    x = torch.randn(20, 10)
    loss = nn.functional.cross_entropy(head(backbone(x)), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
rates = [g["lr"] for g in optimizer.param_groups]
print(rates, loss.item())
