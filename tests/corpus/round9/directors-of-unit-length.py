# /// case
# title = "The directors are normalised through .data"
# category = "in-place"
# kind = "data-edited-in-graph"
# kinds_also_ok = ["edit-through-data", "silent-wrong-gradient", "in-place-hidden-from-autograd"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["n", "data"]
# symptom = "the energy does not change when all modes are scaled, but the gradient says that it does"
# symptom_check = "abs((torch.autograd.grad(energy(director()), director.modes)[0] * director.modes.detach()).sum().item()) > 1e-2"
# cause = "An edit of .data is unknown to autograd, and the gradient is that without the normalisation."
# fix = "n = n / n.norm(dim=1, keepdim=True)"
# ///
import torch
from torch import nn


def cosine_basis(cells, modes):
    place = (torch.arange(cells) + 0.5) / cells
    return torch.cos(torch.pi * place[:, None] * torch.arange(modes)[None, :])


class DirectorField(nn.Module):
    """Orientations of a nematic between two plates, from a few modes."""

    def __init__(self, cells, modes):
        super().__init__()
        self.register_buffer("basis", cosine_basis(cells, modes))
        start = torch.zeros(modes, 3)
        start[0] = torch.tensor([0.6, 0.3, 1.5])
        self.modes = nn.Parameter(start + 0.05 * torch.randn(modes, 3))

    def forward(self):
        n = self.basis @ self.modes  #! also
        n.data /= n.data.norm(dim=1, keepdim=True)  #- here
#+         n = n / n.norm(dim=1, keepdim=True)
        return n


class FrankEnergy:
    def __init__(self, bottom, top, electric, anchoring=10.0):
        self.bottom, self.top = torch.tensor(bottom), torch.tensor(top)
        self.electric, self.anchoring = electric, anchoring

    def __call__(self, n):
        cells = len(n)
        elastic = cells * (n[1:] - n[:-1]).square().sum()
        dielectric = -self.electric * n[:, 2].square().mean()
        walls = -(n[0] @ self.bottom) ** 2 - (n[-1] @ self.top) ** 2
        return elastic + dielectric + self.anchoring * walls


torch.manual_seed(16)
director = DirectorField(24, 5)
energy = FrankEnergy([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], electric=2.0)
optimizer = torch.optim.SGD(director.parameters(), lr=2e-4, momentum=0.8)
for sweep in range(30):
    value = energy(director())
    optimizer.zero_grad()
    value.backward()  #! also
    optimizer.step()
    if sweep % 10 == 0:
        print(sweep, round(value.item(), 4))
