# /// case
# title = "The square root of the zero diagonal gives NaN gradients behind a mask"
# category = "numerics"
# kind = "sqrt-at-zero-nan-gradient"
# kinds_also_ok = ["nan-gradient", "masked-nan-gradient", "where-does-not-stop-nan", "non-finite-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["pairwise", "sqrt", "where", "repulsion"]
# symptom = "after the first step all weights of the generator are NaN"
# symptom_check = "not all(torch.isfinite(p).all() for p in generator.parameters())"
# cause = "the derivative of sqrt at the zero self-distances is infinite, and the zero that where() sends back becomes NaN by the product."
# fix = "clamp the squared distance before the root"
# ///
import torch
from torch import nn


class FoldingGenerator(nn.Module):
    """Folds a fixed grid into a point cloud, given the shape's code."""

    def __init__(self, code_dim, grid=7, hidden=48):
        super().__init__()
        axis = torch.linspace(-1, 1, grid)
        self.register_buffer("grid", torch.cartesian_prod(axis, axis))
        self.fold = nn.Sequential(nn.Linear(code_dim + 2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 3))

    def forward(self, codes):
        points = len(self.grid)
        grid = self.grid.expand(len(codes), -1, -1)
        tiled = codes[:, None].expand(-1, points, -1)
        return self.fold(torch.cat([tiled, grid], -1))


def pairwise(a, b):
    squared = (a[:, :, None] - b[:, None]).square().sum(-1)
    return squared.sqrt()  #- here
#+     return squared.clamp(min=1e-12).sqrt()


def chamfer(a, b):
    distances = pairwise(a, b)
    return distances.amin(2).mean() + distances.amin(1).mean()


class Repulsion(nn.Module):
    def __init__(self, radius):
        super().__init__()
        self.radius = radius

    def forward(self, cloud):
        distances = pairwise(cloud, cloud)  #! also
        same = torch.eye(cloud.size(1), dtype=torch.bool)
        penalty = (self.radius - distances).clamp(min=0).square()
        return torch.where(same, torch.zeros_like(penalty), penalty).sum(-1).mean()  #! also


def ellipsoids(count, points=64):
    axes = 0.5 + torch.rand(count, 3)
    directions = nn.functional.normalize(torch.randn(count, points, 3), dim=-1)
    return axes, directions * axes[:, None]


class EpochLogger:
    def __init__(self, every):
        self.every, self.rows = every, []

    def __call__(self, epoch, **values):
        self.rows.append({name: v.item() for name, v in values.items()})
        if epoch % self.every == 0:
            print(epoch, self.rows[-1])


torch.manual_seed(44)
codes, clouds = ellipsoids(24)
generator = FoldingGenerator(code_dim=3)
repulsion = Repulsion(radius=0.15)
optimizer = torch.optim.NAdam(generator.parameters(), lr=4e-3)
log = EpochLogger(every=10)
for epoch in range(40):
    for index in torch.randperm(24).split(8):
        generated = generator(codes[index])
        shape_loss = chamfer(generated, clouds[index])
        spacing = repulsion(generated)
        optimizer.zero_grad()
        (shape_loss + 0.5 * spacing).backward()  #! also
        optimizer.step()
    log(epoch, chamfer=shape_loss, repulsion=spacing)
