# /// case
# title = "Learned task weights enter the loss as Python floats"
# category = "graph-break"
# kind = "graph-break-item"
# severity = "warning"
# severity_by_writer = "error"
# names = ["precision", "log_var", "log_vars", "item"]
# difficulty = "hard"
# symptom = "each log-variance falls by the learning rate in every step, whatever the task loss is"
# symptom_check = "bool((balancer.log_vars.grad - balancer.log_vars.grad[0]).abs().max() == 0)"
# cause = ".item() turns the precision into a constant; the log-variances only receive the gradient of the regulariser"
# fix = "keep the precision a tensor"
# evidence = [{ url = "https://github.com/lyp-deeplearning/MOS-Multi-Task-Face-Detect/issues/7" }, { url = "https://github.com/Mikoto10032/AutomaticWeightedLoss/issues/2" }]
# ///
"""Multi-task network with homoscedastic uncertainty weighting of three losses."""
from typing import Dict

import torch
import torch.nn as nn
import torch.nn.functional as F


class UncertaintyBalancer(nn.Module):
    """L = sum_k exp(-s_k) L_k + s_k with one learned s_k per task."""

    def __init__(self, tasks):
        super().__init__()
        self.tasks = list(tasks)
        self.log_vars = nn.Parameter(torch.zeros(len(self.tasks)))

    def forward(self, losses: Dict[str, torch.Tensor]):
        total = 0.0
        for k, task in enumerate(self.tasks):
            precision = torch.exp(-self.log_vars[k]).item()  #- here
#+             precision = torch.exp(-self.log_vars[k])
            total = total + precision * losses[task] + self.log_vars[k]  #! also
        return total

    @property
    def weights(self):
        return {t: round(w, 3) for t, w in zip(self.tasks, torch.exp(-self.log_vars).tolist())}


class SharedNet(nn.Module):
    def __init__(self, inputs=12, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleDict({
            "depth": nn.Linear(width, 1),
            "normal": nn.Linear(width, 3),
            "label": nn.Linear(width, 4),
        })

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


class TaskLosses:
    def __call__(self, out, target):
        return {
            "depth": F.l1_loss(out["depth"].squeeze(-1), target["depth"]),
            "normal": 1 - F.cosine_similarity(out["normal"], target["normal"], dim=-1).mean(),
            "label": F.cross_entropy(out["label"], target["label"]),
        }


def synth(n):
    x = torch.randn(n, 12)
    return x, {
        "depth": 5 * x[:, 0].abs() + x[:, 1],
        "normal": F.normalize(x[:, 2:5], dim=-1),
        "label": x[:, 5:9].argmax(dim=-1),
    }


torch.manual_seed(0)
net = SharedNet()
balancer = UncertaintyBalancer(["depth", "normal", "label"])
criterion = TaskLosses()
opt = torch.optim.Adam([
    {"params": net.parameters(), "lr": 2e-3},
    {"params": balancer.parameters(), "lr": 1e-2},
])
for step in range(40):
    x, target = synth(48)
    losses = criterion(net(x), target)
    total = balancer(losses)
    opt.zero_grad()
    total.backward()
    opt.step()
print({k: round(v.item(), 3) for k, v in losses.items()}, balancer.weights)
