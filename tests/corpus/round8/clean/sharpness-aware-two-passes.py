import torch
import torch.nn as nn
import torch.nn.functional as F


class Sam:
    def __init__(self, params, base, rho=0.05):
        self.params, self.base, self.rho = list(params), base, rho
        self.shift = []

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm()
        self.shift = [self.rho * p.grad / (norm + 1e-12) for p in self.params]
        for p, e in zip(self.params, self.shift):
            p.add_(e)

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.shift):
            p.sub_(e)
        self.base.step()


torch.manual_seed(15)
net = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 3))
base = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
sam = Sam(net.parameters(), base)
x = torch.randn(90, 7)
y = x[:, :3].abs().argmax(1)
for epoch in range(4):
    for rows in torch.randperm(90).split(30):
        base.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()
        sam.ascend()
        base.zero_grad()
        loss = F.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        sam.descend()
    print(epoch, loss.item())
