# /// case
# title = "After densification the optimizer still holds the old Gaussians"
# category = "optimizer"
# kind = "optimizer-holds-replaced-parameters"
# kinds_also_ok = ["stale-optimizer-parameters", "parameters-not-in-optimizer", "parameters-replaced-after-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer", "densify", "centers", "field"]
# symptom = "from the densification on no Gaussian moves any more and the loss stays where it is"
# symptom_check = 'not any(p is q for p in field.parameters() for group in trainer.optimizer.param_groups for q in group["params"])'
# cause = "densify() puts new Parameters into the module, and the optimizer keeps updating the old ones."
# fix = "build the optimizer again after densify()"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class GaussianField(nn.Module):
    """A picture as a sum of isotropic two-dimensional Gaussians."""

    def __init__(self, count):
        super().__init__()
        self.centers = nn.Parameter(torch.rand(count, 2))
        self.log_scales = nn.Parameter(torch.full((count,), -1.6))
        self.colors = nn.Parameter(0.1 * torch.randn(count, 3))

    def __len__(self):
        return len(self.centers)

    def forward(self, grid):
        offset = grid[:, :, None] - self.centers
        weight = torch.exp(-0.5 * offset.square().sum(-1) / self.log_scales.exp().square())
        return weight @ self.colors

    @torch.no_grad()
    def densify(self, score, fraction):
        chosen = score.topk(int(fraction * len(score))).indices
        jitter = self.log_scales[chosen, None].exp() * torch.randn(len(chosen), 2) * 0.3
        self.centers = nn.Parameter(torch.cat([self.centers, self.centers[chosen] + jitter]))  #! also
        shrunk = self.log_scales[chosen] - 0.4
        self.log_scales = nn.Parameter(torch.cat([self.log_scales, shrunk]))  #! also
        self.colors = nn.Parameter(torch.cat([self.colors, 0.5 * self.colors[chosen]]))  #! also


class Trainer:
    def __init__(self, field, lr=1e-2, densify_at=(60,)):
        self.field, self.lr, self.densify_at = field, lr, densify_at
        self.optimizer = torch.optim.Adam(field.parameters(), lr=lr)  #! also
        self.score = torch.zeros(len(field))
        self.log = []

    def step(self, index, grid, target):
        picture = self.field(grid)
        loss = F.l1_loss(picture, target) + F.mse_loss(picture, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.score += self.field.centers.grad.norm(dim=1)
        self.optimizer.step()  #! also
        self.log.append(loss.item())
        if index in self.densify_at:
            self.field.densify(self.score, fraction=0.5)  #! here
#+             self.optimizer = torch.optim.Adam(self.field.parameters(), lr=self.lr)
            self.score = torch.zeros(len(self.field))

    def fit(self, grid, target, steps):
        for index in range(steps):
            self.step(index, grid, target)
        return self


def target_picture(size):
    axis = torch.linspace(0, 1, size)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1)
    disc = ((grid - 0.35).square().sum(-1) < 0.05).float()
    stripe = (torch.sin(25 * grid[..., 0]) > 0.3).float() * (grid[..., 1] > 0.6).float()
    return grid, torch.stack([disc, stripe, 0.5 * disc + 0.2 * grid[..., 1]], -1)


torch.manual_seed(17)
grid, picture = target_picture(32)
field = GaussianField(24)
trainer = Trainer(field).fit(grid, picture, steps=140)
print(f"{len(field)} gaussians")
for index in (0, 59, 61, 100, 139):
    print(f"step {index:3d} loss {trainer.log[index]:.4f}")
