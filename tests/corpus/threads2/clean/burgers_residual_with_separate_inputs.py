from types import SimpleNamespace

import torch
import torch.nn as nn

cfg = SimpleNamespace(nu=0.01, width=16, lr=1e-3, points=50, steps=5)


class Solution(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


def d(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


torch.manual_seed(18)
u_net = Solution(cfg.width)
opt = torch.optim.Adam(u_net.parameters(), lr=cfg.lr)
for _ in range(cfg.steps):
    x = (2 * torch.rand(cfg.points, 1) - 1).requires_grad_()
    t = torch.rand(cfg.points, 1, requires_grad=True)
    u = u_net(x, t)
    u_x = d(u, x)
    residual = d(u, t) + u * u_x - cfg.nu * d(u_x, x)
    x0 = 2 * torch.rand(20, 1) - 1
    start = u_net(x0, torch.zeros_like(x0)) + torch.sin(torch.pi * x0)
    loss = residual.pow(2).mean() + start.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
