import math

import torch
from torch import nn
from torch.autograd import grad


class Ansatz(nn.Module):
    """Vanishes on the edge of the unit square."""

    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        wall = (x * (1 - x)).prod(-1, keepdim=True)
        return wall * self.body(x)


def laplacian(net, x):
    u = net(x)
    slope, = grad(u.sum(), x, create_graph=True)
    return sum(grad(slope[:, k].sum(), x, create_graph=True)[0][:, k] for k in range(x.shape[1]))


def load(x):
    return -2 * math.pi ** 2 * torch.sin(math.pi * x).prod(1)


class Sampler:
    def __init__(self, count, seed):
        self.engine = torch.quasirandom.SobolEngine(2, scramble=True, seed=seed)
        self.count = count

    def __iter__(self):
        while True:
            yield self.engine.draw(self.count).requires_grad_()


torch.manual_seed(30)
net = Ansatz()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
for iteration, points in zip(range(25), Sampler(128, 5)):
    residual = laplacian(net, points) - load(points)
    loss = residual.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if iteration % 6 == 0:
        print(f"{iteration:2d} {loss.item():.3f}")
with torch.no_grad():
    print("centre", net(torch.tensor([[0.5, 0.5]])).item())
