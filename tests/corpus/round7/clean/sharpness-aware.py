import torch
import torch.nn as nn
import torch.nn.functional as F


class SAM:
    def __init__(self, parameters, base, rho=0.05, **kwargs):
        self.parameters = list(parameters)
        self.base = base(self.parameters, **kwargs)
        self.rho, self.moved = rho, []

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.parameters]).norm() + 1e-12
        self.moved = [self.rho * p.grad / norm for p in self.parameters]
        torch._foreach_add_(self.parameters, self.moved)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        torch._foreach_sub_(self.parameters, self.moved)
        self.base.step()
        self.base.zero_grad()


torch.manual_seed(137)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
x = torch.randn(60, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
for epoch in range(3):
    for rows in torch.randperm(60).split(20):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.ascend()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.descend()
    print(epoch, loss.item())
