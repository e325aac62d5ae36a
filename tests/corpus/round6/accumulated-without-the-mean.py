# /// case
# title = "Micro-batch losses are summed, not averaged"
# category = "accumulation"
# kind = "accumulation-not-scaled"
# kinds_also_ok = ["missing-loss-scaling", "gradient-too-large"]
# severity = "warning"
# names = ["accumulate", "backward"]
# symptom = "steps are eight times as long as those of the batch of 64; the loss grows"
# symptom_check = "all(moved > 4 * wanted for wanted, moved in norms)"
# cause = "the mean losses of eight micro-batches are added"
# fix = "divide the loss by the number of micro-batches"
# evidence = [
#     { url = "https://github.com/ApolloResearch/e2e_sae/pull/70", title = "Divide loss by grad accumulation steps" },
#     { url = "https://github.com/Morizeyao/GPT2-Chinese/pull/101", title = "fix gradient accumulation bug" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Config:
    batch_size: int = 8
    accumulate: int = 8
    lr: float = 0.2
    max_epochs: int = 3


def batches(x, y, size):
    for i in range(0, len(x), size):
        yield x[i:i + size], y[i:i + size]


torch.manual_seed(1)
cfg = Config()
x = torch.randn(64, 5)
y = x @ torch.randn(5, 1) + 0.1 * torch.randn(64, 1)
model = nn.Linear(5, 1)
criterion = nn.MSELoss()
opt = torch.optim.SGD(model.parameters(), lr=cfg.lr)
norms = []
for epoch in range(cfg.max_epochs):
    before = model.weight.detach().clone()
    mean_grad = torch.autograd.grad(criterion(model(x), y), model.weight)[0]
    for i, (xb, yb) in enumerate(batches(x, y, cfg.batch_size), 1):
        loss = criterion(model(xb), yb)  #! also
        loss.backward()  #- here
#+         (loss / cfg.accumulate).backward()
        if i % cfg.accumulate == 0:
            opt.step()
            opt.zero_grad()
    norms.append((mean_grad.norm() * cfg.lr, (model.weight - before).detach().norm()))
    print(epoch, loss.item())
