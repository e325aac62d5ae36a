import math

import torch
from torch import nn
from torch.autograd import grad


class Wave(nn.Module):
    """u(x, t) for the viscous Burgers equation, with the viscosity as an unknown."""

    def __init__(self, hidden=20):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_viscosity = nn.Parameter(torch.tensor(math.log(0.05)))

    def forward(self, x, t):
        return self.net(torch.stack([x, t], -1)).squeeze(-1)

    def residual(self, x, t):
        x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
        u = self(x, t)
        u_x, u_t = grad(u.sum(), (x, t), create_graph=True)
        u_xx, = grad(u_x.sum(), x, create_graph=True)
        return u_t + u * u_x - self.log_viscosity.exp() * u_xx


def travelling_front(x, t, viscosity=0.2, left=1.0, right=0.0):
    speed = 0.5 * (left + right)
    return speed - 0.5 * (left - right) * torch.tanh((left - right) * (x - speed * t) / (4 * viscosity))


class InverseProblem:
    def __init__(self, sensors=100, collocation=100, noise=0.002):
        self.x = torch.rand(sensors) * 4 - 2
        self.t = torch.rand(sensors)
        self.u = travelling_front(self.x, self.t) + noise * torch.randn(sensors)
        self.collocation = torch.rand(collocation) * 4 - 2, torch.rand(collocation)

    def loss(self, wave):
        data = (wave(self.x, self.t) - self.u).square().mean()
        physics = wave.residual(*self.collocation).square().mean()
        return 20 * data + physics


def warm_up(wave, problem, steps):
    optimizer = torch.optim.Adam([
        {"params": wave.net.parameters(), "lr": 1e-2},
        {"params": [wave.log_viscosity], "lr": 2e-2},
    ])
    for _ in range(steps):
        optimizer.zero_grad()
        loss = problem.loss(wave)
        loss.backward()
        optimizer.step()
    return loss.item()


def polish(wave, problem, rounds):
    optimizer = torch.optim.LBFGS(wave.parameters(), max_iter=15, history_size=12, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = problem.loss(wave)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(rounds)]


torch.manual_seed(85)
problem, wave = InverseProblem(), Wave()
warm = warm_up(wave, problem, steps=200)
curve = polish(wave, problem, rounds=8)
wave.eval()
x = torch.linspace(-2, 2, 50)
with torch.no_grad():
    error = (wave(x, torch.full_like(x, 0.5)) - travelling_front(x, torch.full_like(x, 0.5))).abs().max().item()
print(f"loss {warm:.5f} -> {curve[-1]:.6f}")
print(f"viscosity {wave.log_viscosity.exp().item():.4f} of 0.2, largest error {error:.4f}")
