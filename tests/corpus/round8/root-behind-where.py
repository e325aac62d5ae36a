# /// case
# title = "torch.where covers the root of a negative discriminant"
# category = "numerics"
# kind = "nan-through-where"
# kinds_also_ok = ["nan-gradient", "masked-branch-gradient", "sqrt-of-negative"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["torch.where", "sqrt", "discriminant"]
# symptom = "the loss is finite and the sphere's parameters are nan after a step"
# symptom_check = "bool(torch.isnan(sphere.centre).any())"
# cause = "The branch that was not chosen still has a backward, and its gradient of zero times the root's nan is nan."
# fix = "make the argument harmless inside the where"
# ///
import torch
import torch.nn as nn


class Sphere(nn.Module):
    """Depth image of one sphere that parallel rays along z look at."""

    def __init__(self, centre, radius):
        super().__init__()
        self.centre = nn.Parameter(torch.tensor(centre))
        self.log_radius = nn.Parameter(torch.tensor(radius).log())

    def forward(self, origins, far=4.0):
        offset = origins - self.centre[:2]
        discriminant = self.log_radius.exp() ** 2 - offset.square().sum(-1)
        hit = discriminant > 0
        half = torch.where(hit, torch.sqrt(discriminant), torch.zeros_like(discriminant))  #- here
#+         half = torch.where(hit, torch.sqrt(torch.where(hit, discriminant, 1.0)), torch.zeros_like(discriminant))
        return torch.where(hit, self.centre[2] - half, torch.full_like(half, far)), hit  #! also


def camera(size: int) -> torch.Tensor:
    axis = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    return torch.stack([x, y], dim=-1).reshape(-1, 2)


def depth_loss(depth, hit, wanted, wanted_hit):
    both = hit & wanted_hit
    return (depth - wanted)[both].square().mean() + 0.01 * (depth - wanted).abs().mean()


torch.manual_seed(28)
rays = camera(16)
with torch.no_grad():
    wanted, wanted_hit = Sphere([0.15, -0.1, 2.0], 0.6)(rays)
sphere = Sphere([0.0, 0.1, 2.4], 0.5)
optimizer = torch.optim.Adam(sphere.parameters(), lr=2e-2)
seen = []
for step in range(12):
    rows = torch.randperm(len(rays))[:128]
    depth, hit = sphere(rays[rows])
    loss = depth_loss(depth, hit, wanted[rows], wanted_hit[rows])
    seen.append(loss.item())
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(seen[0], sphere.centre.tolist(), sphere.log_radius.exp().item())
