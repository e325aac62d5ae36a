import torch
from torch import nn

torch.manual_seed(16)


class SAM:
    def __init__(self, params, rho=0.05, **kwargs):
        self.params, self.rho = list(params), rho
        self.base = torch.optim.SGD(self.params, **kwargs)

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12
        self.moved = [p.grad * (self.rho / norm) for p in self.params]
        for p, e in zip(self.params, self.moved):
            p.add_(e)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.moved):
            p.sub_(e)
        self.base.step()
        self.base.zero_grad()


net = nn.Sequential(nn.Linear(7, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = SAM(net.parameters(), lr=0.1, momentum=0.9)
for step in range(10):
    x, y = torch.randn(32, 7), torch.randint(0, 3, (32,))
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.climb()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.descend()
print(loss.item())
