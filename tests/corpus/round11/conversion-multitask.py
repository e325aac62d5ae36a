# /// case
# title = "Learned task weights without the log-variance term that keeps them from zero"
# category = "loss"
# kind = "uncertainty-weighting-without-regulariser"
# kinds_also_ok = ["missing-log-variance-term", "loss-weights-collapse", "degenerate-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["log_variance", "precision", "total"]
# symptom = "all the task weights run to zero and the loss falls without the tasks getting better"
# symptom_check = "min(v.item() for v in weighting.log_variance.values()) > 1.0"
# cause = "The loss can be made as small as one likes by growing log_variance."
# fix = "add 0.5 * log_variance to the loss of every task"
# ///
from typing import NamedTuple

import torch
from torch import nn
import torch.nn.functional as F


class Session(NamedTuple):
    features: torch.Tensor
    click: torch.Tensor
    basket: torch.Tensor
    dwell: torch.Tensor


class SharedBottom(nn.Module):
    TASKS = ("click", "basket", "dwell")

    def __init__(self, features, hidden=32):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.towers = nn.ModuleDict({task: nn.Linear(hidden, 1) for task in self.TASKS})

    def forward(self, features):
        shared = self.bottom(features)
        return {task: tower(shared).squeeze(-1) for task, tower in self.towers.items()}


class UncertaintyWeighting(nn.Module):
    """Weights every task by a learned precision, in the log domain."""

    def __init__(self, tasks):
        super().__init__()
        self.log_variance = nn.ParameterDict({task: nn.Parameter(torch.zeros(())) for task in tasks})  #! also

    def forward(self, losses):
        total = 0.0
        for task, loss in losses.items():
            precision = torch.exp(-self.log_variance[task])  #! also
            total = total + 0.5 * precision * loss  #- here
#+             total = total + 0.5 * precision * loss + 0.5 * self.log_variance[task]
        return total

    def weights(self):
        return {task: round(0.5 * value.detach().neg().exp().item(), 4) for task, value in self.log_variance.items()}


def task_losses(outputs, session):
    return {
        "click": F.binary_cross_entropy_with_logits(outputs["click"], session.click),
        "basket": F.binary_cross_entropy_with_logits(outputs["basket"], session.basket),
        "dwell": F.smooth_l1_loss(outputs["dwell"], session.dwell),
    }


def simulate(count, features=14):
    x = torch.randn(count, features)
    interest = x[:, :5].sum(1) * 0.7
    click = torch.bernoulli(interest.sigmoid())
    basket = click * torch.bernoulli((interest - 1.0).sigmoid())
    dwell = torch.log1p(10.0 * (interest + 0.5 * torch.randn(count)).clamp(min=0.0))
    return Session(x, click, basket, dwell)


def batches(session, size, epochs):
    for epoch in range(epochs):
        for rows in torch.randperm(len(session.click)).split(size):
            yield epoch, Session(*(field[rows] for field in session))


torch.manual_seed(29)
train, valid = simulate(1600), simulate(400)
model = SharedBottom(14)
weighting = UncertaintyWeighting(SharedBottom.TASKS)
optimizer = torch.optim.Adam([
    {"params": model.parameters(), "lr": 2e-3},
    {"params": weighting.parameters(), "lr": 2e-2},
])
reported = -1
for epoch, batch in batches(train, size=64, epochs=8):
    losses = task_losses(model(batch.features), batch)
    total = weighting(losses)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    if epoch != reported:
        reported = epoch
        with torch.no_grad():
            scores = task_losses(model(valid.features), valid)
        print(epoch, {task: round(value.item(), 4) for task, value in scores.items()}, weighting.weights())
