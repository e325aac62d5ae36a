# /// case
# title = "The forces are computed with retain_graph, not create_graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["retain-graph-instead-of-create-graph", "first-order-only"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["forces", "retain_graph", "create_graph"]
# symptom = "the forces have no graph, their term of the loss trains nothing"
# symptom_check = "not forces.requires_grad"
# cause = "retain_graph keeps the graph of the energy; only create_graph makes one for the gradient."
# fix = "create_graph=True"
# ///
import torch
import torch.nn as nn


class RadialBasis(nn.Module):
    def __init__(self, count=12, cutoff=3.0):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.5, cutoff, count))
        self.gamma = (count / cutoff) ** 2

    def forward(self, r):
        return torch.exp(-self.gamma * (r.unsqueeze(-1) - self.centres) ** 2)


class Potential(nn.Module):
    def __init__(self, atoms):
        super().__init__()
        self.basis = RadialBasis()
        self.pair = nn.Sequential(nn.Linear(12, 24), nn.SiLU(), nn.Linear(24, 1))
        i, j = torch.triu_indices(atoms, atoms, 1)
        self.register_buffer("i", i)
        self.register_buffer("j", j)

    def forward(self, positions):
        r = (positions[:, self.i] - positions[:, self.j]).norm(dim=-1)
        return self.pair(self.basis(r)).sum(dim=(1, 2))


def energy_and_forces(potential, positions):
    positions = positions.detach().requires_grad_(True)
    energy = potential(positions)
    forces = -torch.autograd.grad(energy.sum(), positions, retain_graph=True)[0]  #- here
#+     forces = -torch.autograd.grad(energy.sum(), positions, create_graph=True)[0]
    return energy, forces


def morse(positions, i, j):
    r = (positions[:, i] - positions[:, j]).norm(dim=-1)
    return ((1 - torch.exp(-1.5 * (r - 1.1))) ** 2).sum(1)


torch.manual_seed(13)
atoms = 4
potential = Potential(atoms)
frames = torch.tensor([[0.0, 0, 0], [1.2, 0, 0], [0, 1.2, 0], [0, 0, 1.2]]) + 0.1 * torch.randn(60, atoms, 3)
frames.requires_grad_(True)
energies = morse(frames, potential.i, potential.j)
targets = -torch.autograd.grad(energies.sum(), frames)[0]
frames, energies = frames.detach(), energies.detach()

optimizer = torch.optim.Adam(potential.parameters(), lr=5e-3)
for epoch in range(4):
    for rows in torch.randperm(60).split(15):
        energy, forces = energy_and_forces(potential, frames[rows])
        loss = 0.1 * (energy - energies[rows]).square().mean() + (forces - targets[rows]).square().mean()  #! also
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
