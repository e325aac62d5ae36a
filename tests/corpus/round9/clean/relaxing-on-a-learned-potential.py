import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self, atoms):
        super().__init__()
        self.pairs = torch.triu_indices(atoms, atoms, 1)
        self.net = nn.Sequential(nn.Linear(1, 24), nn.SiLU(), nn.Linear(24, 1))

    def forward(self, positions):
        i, j = self.pairs
        r = (positions[..., i, :] - positions[..., j, :]).norm(dim=-1, keepdim=True)
        return self.net(r).sum((-1, -2))


def fit(potential, steps):
    optimizer = torch.optim.Adam(potential.parameters(), lr=2e-2)
    for _ in range(steps):
        r = 0.7 + 2 * torch.rand(64, 1)
        loss = (potential.net(r) - (1 - torch.exp(-1.2 * (r - 1.3))) ** 2).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def dynamics(potential, positions, steps, dt=0.02, friction=0.9):
    velocity = torch.zeros_like(positions)
    energies = []
    for _ in range(steps):
        positions = positions.detach().requires_grad_()
        energy = potential(positions)
        force = -torch.autograd.grad(energy, positions)[0]
        velocity = friction * velocity + dt * force
        positions = positions + dt * velocity
        energies.append(energy.item())
    return positions.detach(), energies


torch.manual_seed(25)
potential = Potential(5)
print("fit", fit(potential, 25))
potential.requires_grad_(False).eval()
positions, energies = dynamics(potential, 1.2 * torch.randn(5, 3), 30)
print(energies[0], energies[-1])
