import math
from functools import partial

import torch
from torch import nn


def build(depth=3, width=24, act=nn.ReLU):
    layers = [nn.Linear(1, width), act()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), act()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def diff(f, x, order):
    for _ in range(order):
        f = torch.autograd.grad(f.sum(), x, create_graph=True)[0]
    return f


def poisson(model, n):
    x = torch.rand(n, 1).requires_grad_()
    u_xx = diff(model(x), x, 2)
    forcing = -(math.pi**2) * torch.sin(math.pi * x)
    return (u_xx - forcing).pow(2).mean(), u_xx


def edges(model):
    return model(torch.tensor([[0.0], [1.0]])).pow(2).mean()


torch.manual_seed(15)
model = build()
terms = {"pde": partial(poisson, model, 40)}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(6):
    residual, u_xx = terms["pde"]()
    loss = residual + 10 * edges(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(residual.item())
