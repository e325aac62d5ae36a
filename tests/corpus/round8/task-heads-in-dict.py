# /// case
# title = "The heads of a multi-task network are kept in a plain dict"
# category = "optimizer"
# kind = "module-not-registered"
# kinds_also_ok = ["parameter-not-in-optimizer", "submodule-in-plain-container"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["heads", "ModuleDict"]
# symptom = "the heads keep their initial weights"
# symptom_check = 'torch.equal(net.heads["age"].weight, start)'
# cause = "The heads are values of a plain dict, so that they are not registered and net.parameters() does not give them to the optimizer."
# fix = "nn.ModuleDict"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    features: int = 10
    hidden: int = 24
    lr: float = 3e-3
    epochs: int = 4
    batch: int = 20


class MultiTask(nn.Module):
    def __init__(self, cfg: Config, tasks: dict[str, int]) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(cfg.features, cfg.hidden), nn.GELU(), nn.Linear(cfg.hidden, cfg.hidden))
        self.heads = {name: nn.Linear(cfg.hidden, width) for name, width in tasks.items()}  #- here
#+         self.heads = nn.ModuleDict({name: nn.Linear(cfg.hidden, width) for name, width in tasks.items()})

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        shared = F.gelu(self.trunk(x))
        return {name: head(shared) for name, head in self.heads.items()}


def losses(out: dict[str, torch.Tensor], batch: dict[str, torch.Tensor]) -> torch.Tensor:
    age = F.smooth_l1_loss(out["age"].squeeze(1), batch["age"])
    job = F.cross_entropy(out["job"], batch["job"])
    return 0.5 * age + job


cfg = Config()
torch.manual_seed(21)
table = torch.randn(80, cfg.features)
targets = {"age": table[:, 0] * 2 + 1, "job": torch.randint(0, 5, (80,))}
net = MultiTask(cfg, {"age": 1, "job": 5})
start = net.heads["age"].weight.detach().clone()
optimizer = torch.optim.Adam(net.parameters(), lr=cfg.lr)  #! also
for epoch in range(cfg.epochs):
    for rows in torch.randperm(80).split(cfg.batch):
        out = net(table[rows])
        loss = losses(out, {k: v[rows] for k, v in targets.items()})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  #! also
    print(epoch, round(loss.item(), 4))
