# /// case
# title = "Second derivative of a ReLU network in a residual"
# category = "higher-order"
# kind = "second-derivative-zero"
# severity = "warning"
# names = ["u_xx", "ReLU"]
# symptom = "u_xx is zero everywhere: only the edges train"
# symptom_check = "float(u_xx.detach().abs().max()) == 0.0"
# cause = "the second derivative of ReLU is zero"
# fix = "an activation with a second derivative"
# evidence = [
#     { url = "https://github.com/NVIDIA/physicsnemo/pull/956", title = "Add tutorial on physics addition" },
# ]
# ///
import math
from functools import partial

import torch
from torch import nn


def build(depth=3, width=24, act=nn.ReLU):  #- here
#+ def build(depth=3, width=24, act=nn.Tanh):
    layers = [nn.Linear(1, width), act()]  #! also
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), act()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def diff(f, x, order):
    for _ in range(order):
        f = torch.autograd.grad(f.sum(), x, create_graph=True)[0]  #! also
    return f


def poisson(model, n):
    x = torch.rand(n, 1).requires_grad_()
    u_xx = diff(model(x), x, 2)  #! also
    forcing = -(math.pi**2) * torch.sin(math.pi * x)
    return (u_xx - forcing).pow(2).mean(), u_xx


def edges(model):
    return model(torch.tensor([[0.0], [1.0]])).pow(2).mean()


torch.manual_seed(15)
model = build()  #! also
terms = {"pde": partial(poisson, model, 40)}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(6):
    residual, u_xx = terms["pde"]()
    loss = residual + 10 * edges(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(residual.item())
