# /// case
# title = "Forces are computed with retain_graph instead of create_graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["loss-term-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["forces", "retain_graph", "force_loss"]
# difficulty = "medium"
# symptom = "the force error is part of the loss value but has no effect on the weights"
# symptom_check = "not forces.requires_grad"
# cause = "the gradient of the energy is returned without a graph, so the force loss is a constant for the parameters"
# fix = "create_graph=True"
# evidence = [{ url = "https://github.com/aiqm/torchani/pull/238" }, { url = "https://github.com/atomistic-machine-learning/schnetpack/issues/279" }]
# ///
"""Neural potential for small clusters, trained on energies and forces."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    atoms: int = 5
    radial: int = 12
    cutoff: float = 4.0
    energy_weight: float = 0.1
    force_weight: float = 1.0
    lr: float = 5e-3
    steps: int = 20
    batch: int = 16


class RadialBasis(nn.Module):
    def __init__(self, size, cutoff):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.5, cutoff, size))
        self.width = cutoff / size

    def forward(self, r):
        return torch.exp(-((r.unsqueeze(-1) - self.centres) / self.width).pow(2))


class PairPotential(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.basis = RadialBasis(cfg.radial, cfg.cutoff)
        self.pair = nn.Sequential(nn.Linear(cfg.radial, 32), nn.SiLU(), nn.Linear(32, 1))
        i, j = torch.triu_indices(cfg.atoms, cfg.atoms, offset=1)
        self.register_buffer("i", i)
        self.register_buffer("j", j)

    def energy(self, pos):
        r = (pos[:, self.i] - pos[:, self.j]).norm(dim=-1)
        return self.pair(self.basis(r)).sum(dim=(1, 2))

    def forward(self, pos):
        pos = pos.clone().requires_grad_(True)
        energy = self.energy(pos)
        forces = -torch.autograd.grad(energy.sum(), pos, retain_graph=True)[0]  #- here
#+         forces = -torch.autograd.grad(energy.sum(), pos, create_graph=True)[0]
        return energy, forces  #! also


def reference(pos, i, j):
    pos = pos.clone().requires_grad_(True)
    r = (pos[:, i] - pos[:, j]).norm(dim=-1)
    energy = ((1 - torch.exp(-(r - 1.5))).pow(2) - 1).sum(dim=1)
    forces = -torch.autograd.grad(energy.sum(), pos)[0]
    return energy.detach(), forces


def clusters(cfg):
    grid = torch.tensor([[0, 0, 0], [1.6, 0, 0], [0, 1.6, 0], [0, 0, 1.6], [1.2, 1.2, 1.2]], dtype=torch.float32)
    return grid + 0.15 * torch.randn(cfg.batch, cfg.atoms, 3)


cfg = Settings()
torch.manual_seed(0)
model = PairPotential(cfg)
opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
for step in range(cfg.steps):
    pos = clusters(cfg)
    e_ref, f_ref = reference(pos, model.i, model.j)
    energy, forces = model(pos)
    energy_loss = F.mse_loss(energy, e_ref)
    force_loss = F.mse_loss(forces, f_ref)  #! also
    loss = cfg.energy_weight * energy_loss + cfg.force_weight * force_loss  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"energy {energy_loss.item():.3f} forces {force_loss.item():.3f}")
