import math

import torch
from torch import nn


class Deflection(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return x * (1 - x) * self.net(x)


def derivative(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]


def energy_residual(model, x, load):
    u = model(x)
    u2 = derivative(derivative(u, x), x)
    return u2 + load(x.detach())


torch.manual_seed(13)
model = Deflection()
points = torch.linspace(0, 1, 33).unsqueeze(-1).requires_grad_()
load = lambda x: math.pi ** 2 * torch.sin(math.pi * x)
lbfgs = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=15, history_size=20, line_search_fn="strong_wolfe")
trace = []


def closure():
    lbfgs.zero_grad()
    loss = energy_residual(model, points, load).square().mean()
    loss.backward()
    trace.append(loss.item())
    return loss


for sweep in range(4):
    lbfgs.step(closure)
    print(sweep, f"{trace[-1]:.3e}")

with torch.no_grad():
    exact = torch.sin(math.pi * points)
    print("max error", (model(points) - exact).abs().max().item())
