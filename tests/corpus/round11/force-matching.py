# /// case
# title = "Forces are differentiated with retain_graph instead of create_graph"
# category = "higher-order"
# kind = "create-graph-missing"
# kinds_also_ok = ["retain-graph-instead-of-create-graph", "force-loss-without-gradient", "second-order-gradient-missing"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["forces", "create_graph", "retain_graph", "autograd.grad"]
# symptom = "the force term of the loss has no gradient and the potential is fitted to the energies only"
# symptom_check = "not potential(train.positions[:2])[1].requires_grad"
# cause = "without create_graph the result of autograd.grad is a constant for the loss."
# fix = "create_graph=True"
# ///
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Frames:
    positions: torch.Tensor
    energy: torch.Tensor
    forces: torch.Tensor

    def batches(self, size):
        for index in torch.randperm(len(self.energy)).split(size):
            yield Frames(self.positions[index], self.energy[index], self.forces[index])


class RadialBasis(nn.Module):
    def __init__(self, count=12, cutoff=3.0):
        super().__init__()
        self.cutoff = cutoff
        self.register_buffer("centers", torch.linspace(0.3, cutoff, count))
        self.gamma = (count / cutoff) ** 2

    def forward(self, distance):
        envelope = 0.5 * (torch.cos(torch.pi * distance.clamp(max=self.cutoff) / self.cutoff) + 1)
        basis = torch.exp(-self.gamma * (distance[..., None] - self.centers).square())
        return basis * envelope[..., None]


class InteratomicPotential(nn.Module):
    def __init__(self, atoms, width=24):
        super().__init__()
        self.register_buffer("pairs", torch.combinations(torch.arange(atoms)).T)
        self.basis = RadialBasis()
        self.message = nn.Sequential(nn.Linear(12, width), nn.SiLU(), nn.Linear(width, width))
        self.readout = nn.Sequential(nn.SiLU(), nn.Linear(width, 1))

    def energy(self, positions):
        i, j = self.pairs
        distance = (positions[:, i] - positions[:, j]).norm(dim=-1)
        message = self.message(self.basis(distance))
        nodes = torch.zeros(*positions.shape[:2], message.size(-1))
        nodes = nodes.index_add(1, i, message).index_add(1, j, message)
        return self.readout(nodes).sum((1, 2))

    def forward(self, positions):
        positions = positions.detach().requires_grad_()
        energy = self.energy(positions)
        gradient, = torch.autograd.grad(energy.sum(), positions, retain_graph=True)  #- here
#+         gradient, = torch.autograd.grad(energy.sum(), positions, create_graph=True)
        return energy, -gradient  #! also


def morse_clusters(count, atoms=4, depth=1.0, width=1.5, rest=1.2):
    ideal = rest * torch.tensor([[0, 0, 0], [1, 0, 0], [0.5, 0.87, 0], [0.5, 0.29, 0.82]])
    positions = (ideal + 0.12 * torch.randn(count, atoms, 3)).requires_grad_()
    i, j = torch.combinations(torch.arange(atoms)).T
    distance = (positions[:, i] - positions[:, j]).norm(dim=-1)
    energy = (depth * (1 - torch.exp(-width * (distance - rest))).square()).sum(1)
    gradient, = torch.autograd.grad(energy.sum(), positions)
    return Frames(positions.detach(), energy.detach(), -gradient)


def force_error(potential, frames):
    _, forces = potential(frames.positions)
    return (forces.detach() - frames.forces).abs().mean().item()


torch.manual_seed(72)
train, valid = morse_clusters(64), morse_clusters(64)
potential = InteratomicPotential(atoms=4)
optimizer = torch.optim.Adam(potential.parameters(), lr=3e-3, amsgrad=True)
rho = 20.0
for epoch in range(40):
    for batch in train.batches(16):
        energy, forces = potential(batch.positions)
        loss = F.mse_loss(energy, batch.energy) + rho * F.mse_loss(forces, batch.forces)  #! also
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
    if epoch % 10 == 0:
        print(f"{epoch:3d} loss {loss.item():.4f} force error {force_error(potential, valid):.4f}")
print(f"final force error {force_error(potential, valid):.4f} of {valid.forces.abs().mean().item():.4f}")
