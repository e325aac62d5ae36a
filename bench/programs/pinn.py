"""Second derivatives by create_graph: a small physics-informed network, 40 steps."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
t = torch.linspace(0, 1, 32).reshape(-1, 1).requires_grad_()
for _ in range(40):
    optimizer.zero_grad()
    u = net(t)
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), t, create_graph=True)
    loss = ((ddu + u) ** 2).mean()
    loss.backward()
    optimizer.step()
