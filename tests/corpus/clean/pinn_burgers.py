import math

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


for step in range(4):
    x = (torch.rand(40, 1) * 2 - 1).requires_grad_()
    t = torch.rand(40, 1, requires_grad=True)
    u = net(torch.cat([x, t], 1))
    u_x, u_t = derivative(u, x), derivative(u, t)
    residual = u_t + u * u_x - 0.01 / math.pi * derivative(u_x, x)
    x0 = torch.rand(20, 1) * 2 - 1
    start = net(torch.cat([x0, torch.zeros_like(x0)], 1)) + torch.sin(math.pi * x0)
    loss = residual.pow(2).mean() + start.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
