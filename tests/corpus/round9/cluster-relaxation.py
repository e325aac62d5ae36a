# /// case
# title = "The square root of the zeros of the diagonal, masked afterwards"
# category = "numerics"
# kind = "sqrt-at-zero"
# kinds_also_ok = ["nan-gradient-of-norm", "masked-after-the-fact"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sqrt", "squared", "others"]
# symptom = "the positions are nan after the first step"
# symptom_check = "bool(positions.isnan().any())"
# cause = "The derivative of sqrt at 0 is infinite, and infinity times the mask's zero is nan."
# fix = "make the diagonal 1 before the root"
# ///
import torch


class MorseCluster:
    def __init__(self, atoms, depth=1.0, width=1.4, rest=1.2):
        self.depth, self.width, self.rest = depth, width, rest
        self.others = 1.0 - torch.eye(atoms)

    def distances(self, positions):
        separation = positions[:, None, :] - positions[None, :, :]
        squared = separation.square().sum(-1)  #- here
#+         squared = separation.square().sum(-1) + (1.0 - self.others)
        return squared.sqrt()  #! here

    def energy(self, positions):
        stretch = torch.exp(-self.width * (self.distances(positions) - self.rest))
        pairs = self.depth * ((1 - stretch) ** 2 - 1) * self.others  #! also
        return 0.5 * pairs.sum()


def lattice(side, spacing, jitter):
    axis = spacing * torch.arange(side, dtype=torch.float32)
    grid = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    return grid + jitter * torch.randn_like(grid)


def relax(cluster, positions, steps):
    optimizer = torch.optim.SGD([positions], lr=0.02, momentum=0.7)
    energies = []
    for _ in range(steps):
        optimizer.zero_grad()
        energy = cluster.energy(positions)
        energy.backward()  #! also
        optimizer.step()
        energies.append(energy.item())
    return energies


torch.manual_seed(47)
positions = lattice(2, 1.3, 0.1).requires_grad_()
cluster = MorseCluster(len(positions))
energies = relax(cluster, positions, 25)
print("start", round(energies[0], 4), "end", round(energies[-1], 4))
print("spread", positions.detach().std(0).tolist())
