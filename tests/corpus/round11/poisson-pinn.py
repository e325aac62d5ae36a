# /// case
# title = "The residual broadcasts a column against a row"
# category = "loss"
# kind = "broadcast-residual"
# kinds_also_ok = ["shape-mismatch-broadcast", "unintended-broadcasting", "loss-broadcasts"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["residual", "laplacian", "source"]
# symptom = "the residual has n times n entries, and the network learns the mean of the source instead of the source"
# symptom_check = "problem.residual(network, problem.interior(32)).numel() != 32"
# cause = "the laplacian is of shape (n, 1) and the source of shape (n,), so that their difference is a matrix."
# fix = "give the source the same shape"
# ///
from itertools import islice

import torch
from torch import nn
from torch.autograd import grad


class Sine(nn.Module):
    def __init__(self, omega):
        super().__init__()
        self.omega = omega

    def forward(self, x):
        return torch.sin(self.omega * x)


class Poisson2D:
    """-laplace(u) = f on the unit square with u = 0 on the boundary."""

    @staticmethod
    def exact(xy):
        return torch.sin(torch.pi * xy[:, 0]) * torch.sin(torch.pi * xy[:, 1])

    def source(self, xy):
        return 2 * torch.pi ** 2 * self.exact(xy)

    @staticmethod
    def interior(count):
        return torch.rand(count, 2).requires_grad_()

    @staticmethod
    def boundary(count):
        along, side = torch.rand(count), torch.randint(2, (count,)).float()
        horizontal = torch.stack([along, side], 1)
        return torch.where(torch.rand(count, 1) < 0.5, horizontal, horizontal.flip(1))

    def residual(self, u, xy):
        value = u(xy)
        first, = grad(value.sum(), xy, create_graph=True)
        laplacian = 0
        for axis in range(2):
            second, = grad(first[:, axis].sum(), xy, create_graph=True)
            laplacian = laplacian + second[:, axis:axis + 1]  #! also
        return laplacian + self.source(xy.detach())  #- here
#+         return laplacian + self.source(xy.detach()).unsqueeze(1)


def train(network, problem, lr=2e-3, boundary_weight=50.0):
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.998)
    while True:
        inside = problem.residual(network, problem.interior(128)).square().mean()  #! also
        edge = network(problem.boundary(64)).square().mean()
        optimizer.zero_grad()
        (inside + boundary_weight * edge).backward()
        optimizer.step()
        decay.step()
        yield inside.item(), edge.item()


torch.manual_seed(11)
problem = Poisson2D()
network = nn.Sequential(
    nn.Linear(2, 32), Sine(3.0),
    nn.Linear(32, 32), Sine(1.0),
    nn.Linear(32, 1),
)
for step, (inside, edge) in enumerate(islice(train(network, problem), 300)):
    if step % 60 == 0:
        print(f"{step:4d} residual {inside:.3f} boundary {edge:.5f}")
with torch.no_grad():
    lattice = torch.cartesian_prod(torch.linspace(0, 1, 21), torch.linspace(0, 1, 21))
    error = (network(lattice).squeeze(1) - problem.exact(lattice)).abs().max().item()
print(f"largest error {error:.4f}")
