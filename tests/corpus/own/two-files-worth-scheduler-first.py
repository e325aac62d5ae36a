# /// case
# category = "wiring"
# kind = "scheduler-before-optimizer"
# severity = "warning"
# names = ["scheduler", "optimizer", "step"]
# ///
#-
import torch
from torch import nn


class Schedules:
    def __init__(self, optimizer):
        self.items = [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]

    def advance(self):
        for scheduler in self.items:
            scheduler.step()  #! here


class Loop:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.schedules = Schedules(self.optimizer)

    def run(self, epochs):
        for _ in range(epochs):
            self.schedules.advance()  #- also
            for x in torch.randn(2, 8, 4):
                self.optimizer.zero_grad()
                self.net(x).pow(2).mean().backward()
                self.optimizer.step()
#+             self.schedules.advance()


torch.manual_seed(0)
Loop().run(4)
