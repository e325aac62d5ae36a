import math

import torch
from torch import nn

torch.manual_seed(35)


def d(out, wrt):
    return torch.autograd.grad(out, wrt, grad_outputs=torch.ones_like(out), create_graph=True)[0]


u = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
log_kappa = nn.Parameter(torch.tensor(-2.0))
optimizer = torch.optim.Adam([*u.parameters(), log_kappa], lr=3e-3)
for it in range(15):
    x, t = torch.rand(60, 1, requires_grad=True), torch.rand(60, 1, requires_grad=True)
    out = u(torch.cat([x, t], 1))
    residual = d(out, t) - log_kappa.exp() * d(d(out, x), x)
    x0 = torch.rand(40, 1)
    start = u(torch.cat([x0, torch.zeros_like(x0)], 1)) - torch.sin(math.pi * x0)
    side = u(torch.cat([torch.randint(0, 2, (20, 1)).float(), torch.rand(20, 1)], 1))
    loss = residual.square().mean() + start.square().mean() + side.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), log_kappa.exp().item())
