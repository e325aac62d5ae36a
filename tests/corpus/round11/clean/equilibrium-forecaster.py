import torch
from torch import nn
import torch.nn.functional as F


class ContractiveCell(nn.Module):
    def __init__(self, inputs, dim):
        super().__init__()
        self.recurrent = nn.utils.parametrizations.spectral_norm(nn.Linear(dim, dim, bias=False))
        self.inject = nn.Linear(inputs, dim)

    def transition(self, x):
        weight, injected = self.recurrent.weight, self.inject(x)
        return lambda z: torch.tanh(0.8 * F.linear(z, weight) + injected)


def fixed_point(function, start, iterations, tolerance):
    z = start
    for _ in range(iterations):
        following = function(z)
        if (following - z).norm() <= tolerance * (1e-6 + following.norm()):
            return following
        z = following
    return z


class Equilibrium(nn.Module):
    """The gradient comes from the implicit function theorem, not from the iterations of the solver."""

    def __init__(self, cell, dim, iterations=40, tolerance=1e-4):
        super().__init__()
        self.cell, self.dim = cell, dim
        self.iterations, self.tolerance = iterations, tolerance

    def forward(self, x):
        start = torch.zeros(len(x), self.dim)
        step = self.cell.transition(x)
        with torch.no_grad():
            z = fixed_point(step, start, self.iterations, self.tolerance)
        z = step(z)
        if not self.training:
            return z
        anchor = z.detach().requires_grad_()
        mapped = step(anchor)

        def solve(grad):
            through = lambda v: torch.autograd.grad(mapped, anchor, v, retain_graph=True)[0] + grad
            return fixed_point(through, grad, self.iterations, self.tolerance)

        z.register_hook(solve)
        return z


class Forecaster(nn.Module):
    def __init__(self, window, dim=20):
        super().__init__()
        self.equilibrium = Equilibrium(ContractiveCell(window, dim), dim)
        self.readout = nn.Linear(dim, 1)

    def forward(self, window):
        return self.readout(self.equilibrium(window)).squeeze(-1)


def demand(count, window=12):
    t = torch.arange(window + 1.0)
    level = torch.rand(count, 1)
    series = level + torch.sin(t * (0.3 + 0.4 * torch.rand(count, 1)) + 6.28 * torch.rand(count, 1))
    series = series + 0.05 * torch.randn(count, window + 1)
    return series[:, :-1], series[:, -1]


torch.manual_seed(85)
model = Forecaster(12)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
x, y = demand(512)
for epoch in range(12):
    model.train()
    for rows in torch.randperm(512).split(64):
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch + 1} mse {F.mse_loss(model(x), y).item():.4f}")
