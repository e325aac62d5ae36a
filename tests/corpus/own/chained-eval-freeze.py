# /// case
# category = "leaf"
# kind = "freeze-without-effect"
# severity = "warning"
# names = ["trunk"]
# ///
#-
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Experiment:
    trunk: nn.Module = field(default_factory=lambda: nn.Sequential(nn.Linear(9, 9), nn.ReLU()))
    probe: nn.Module = field(default_factory=lambda: nn.Linear(9, 2))

    def prepare(self):
        self.trunk.requires_grad = False  #- here
#+         self.trunk.requires_grad_(False)
        self.optimizer = torch.optim.SGD([*self.trunk.parameters(), *self.probe.parameters()], lr=0.1)
        return self

    def run(self, batches):
        for rows, labels in batches:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.probe(self.trunk(rows)), labels).backward()
            self.optimizer.step()


torch.manual_seed(0)
Experiment().prepare().run((torch.randn(8, 9), torch.randint(0, 2, (8,))) for _ in range(4))
