# /// case
# category = "gradient"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["optimizer", "opt", "zero_grad"]
# ///
#-
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    lr: float = 0.05
    steps: int = 6


class Fitter:
    def __init__(self, config):
        self.config = config
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=config.lr)

    def _update(self, loss):
#+         self.opt.zero_grad()
        loss.backward()  #! here
        self.opt.step()  #! also

    def fit(self):
        for _ in range(self.config.steps):
            x = torch.randn(16, 4)
            self._update((self.net(x) - x.sum(1, keepdim=True)).pow(2).mean())


torch.manual_seed(0)
Fitter(Config()).fit()
