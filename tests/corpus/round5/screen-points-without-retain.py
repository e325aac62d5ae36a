# /// case
# title = "The gradient of an intermediate tensor is read that nobody kept"
# category = "leaf"
# kind = "grad-of-non-leaf"
# kinds_also_ok = ["missing-retain-grad"]
# severity = "error"
# names = ["mean_2d", "retain_grad"]
# symptom = "the gradient of the projected points is None"
# raises = "AttributeError"
# raises_message = "'NoneType' object has no attribute 'detach'"
# cause = "only leaves keep their gradient"
# fix = "retain_grad() after the projection"
# evidence = [
#     { url = "https://github.com/mks0601/ExAvatar_RELEASE/issues/76", title = "x.grad.detach()" },
# ]
# ///
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(15)


class Gaussians(nn.Module):
    def __init__(self, n=20):
        super().__init__()
        self.mean = nn.Parameter(torch.randn(n, 3))
        self.rgb = nn.Parameter(torch.rand(n, 3))
        self.register_buffer("grad_sum", torch.zeros(n))
        self.register_buffer("seen", torch.zeros(n))

    def project(self, cam):
        p = self.mean @ cam.T
        return p[:, :2] / (p[:, 2:].abs() + 2)


def render(mean_2d, rgb, grid):
    weight = torch.exp(-4 * torch.cdist(grid, mean_2d).square())
    return weight @ rgb / (weight.sum(1, keepdim=True) + 1e-3)


axis = torch.linspace(-1, 1, 8)
grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).view(-1, 2)
scene = Gaussians()
opt = torch.optim.Adam(scene.parameters(), lr=5e-3)
cams = [torch.linalg.qr(torch.randn(3, 3))[0] for _ in range(2)]
target = torch.rand(64, 3)
for it in range(4):
    opt.zero_grad()
    stats = {"mean_2d": []}
    loss = 0.0
    for cam in cams:
        mean_2d = scene.project(cam)  #! here
#+         mean_2d.retain_grad()
        stats["mean_2d"].append(mean_2d)
        loss = loss + (render(mean_2d, scene.rgb, grid) - target).abs().mean()
    loss.backward()
    # densification statistics
    norms = torch.stack([x.grad.detach().norm(dim=-1) for x in stats["mean_2d"]])  #! here
    scene.grad_sum += norms.sum(0)
    scene.seen += len(cams)
    opt.step()
print((scene.grad_sum / scene.seen).max().item())
