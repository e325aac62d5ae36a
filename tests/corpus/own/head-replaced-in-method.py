# /// case
# category = "wiring"
# kind = "parameters-replaced-after-optimizer"
# severity = "warning"
# names = ["head"]
# ///
#-
import torch
from torch import nn


class Learner:
    def __init__(self, classes):
        self.net = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, classes))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-2)  #! here

    def grow(self, classes):
        old = self.net[-1]
        self.net[-1] = nn.Linear(10, classes)  #! here
        with torch.no_grad():
            self.net[-1].weight[: old.out_features] = old.weight
            self.net[-1].bias[: old.out_features] = old.bias
#+         self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-2)

    def fit(self, x, y, steps=4):
        for _ in range(steps):
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()


torch.manual_seed(0)
learner = Learner(2)
print(learner.fit(torch.randn(20, 6), torch.randint(0, 2, (20,))))
learner.grow(4)
print(learner.fit(torch.randn(20, 6), torch.randint(0, 4, (20,))))
