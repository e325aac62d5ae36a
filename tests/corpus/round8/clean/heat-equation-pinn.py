import math

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x, t):
        return torch.sin(math.pi * x) * (1 + t * self.layers(torch.cat([x, t], 1)))


def partial(u, v):
    return torch.autograd.grad(u.sum(), v, create_graph=True)[0]


def residual(net, n):
    x = torch.rand(n, 1, requires_grad=True)
    t = torch.rand(n, 1, requires_grad=True)
    u = net(x, t)
    return partial(u, t) - 0.1 * partial(partial(u, x), x)


torch.manual_seed(38)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
history = []
for step in range(20):
    optimizer.zero_grad()
    loss = residual(net, 64).square().mean()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
x, t = torch.full((1, 1), 0.5), torch.full((1, 1), 1.0)
print(history[0], history[-1], net(x, t).item(), math.exp(-0.1 * math.pi ** 2))
