# /// case
# title = "Division is guarded after it was made"
# category = "numerics"
# kind = "nonfinite-gradient-masked-branch"
# kinds_also_ok = ["nonfinite-gradient"]
# severity = "error"
# names = ["where", "z_vec", "scale"]
# symptom = "one point at infinity makes all gradients NaN"
# symptom_check = "bool(torch.isnan(model.free).any())"
# cause = "where() chooses the value; the gradient of 1 / 0 is multiplied by zero"
# fix = "make the denominator safe before the division"
# evidence = [
#     { url = "https://github.com/kornia/kornia/issues/367", title = "[Bug] convert_points_from_homogeneous - NaN gradients in backward pass" },
#     { url = "https://github.com/pytorch/pytorch/issues/16317", title = "NaN gradients even after removing 0/0 value using torch.where" },
# ]
# ///
import torch
from torch import nn

EPS = 1e-8


def convert_points_from_homogeneous(points):
    z_vec = points[..., -1:]
    scale = torch.where(z_vec.abs() > EPS, 1.0 / z_vec, torch.ones_like(z_vec))  #- here
#+     safe = torch.where(z_vec.abs() > EPS, z_vec, torch.ones_like(z_vec))
#+     scale = 1.0 / safe
    return scale * points[..., :-1]  #! also


def transform_points(matrix, points):
    ones = torch.ones_like(points[..., :1])
    moved = torch.cat([points, ones], -1) @ matrix.transpose(-1, -2)
    return convert_points_from_homogeneous(moved)


class HomographyRegressor(nn.Module):
    """Eight free entries; the last one is fixed."""

    def __init__(self):
        super().__init__()
        self.free = nn.Parameter(torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.5, 0.0]))

    def matrix(self):
        return torch.cat([self.free, self.free.new_ones(1)]).view(3, 3)

    def forward(self, points):
        return transform_points(self.matrix(), points)


torch.manual_seed(90)
grid = torch.cartesian_prod(torch.linspace(-2, 2, 5), torch.linspace(-1, 1, 3))
model = HomographyRegressor()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
target = grid + 0.1
for step in range(3):
    warped = model(grid)
    inside = (warped.detach().abs() < 3).all(-1)
    loss = (warped - target)[inside].abs().mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item(), model.free.grad)
