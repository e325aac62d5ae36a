# /// case
# title = "The rotation is rebuilt with torch.tensor, so the angles never move"
# category = "graph-break"
# kind = "tensor-constructor-cuts-graph"
# kinds_also_ok = ["graph-break", "torch-tensor-detaches", "parameter-without-gradient", "detached-by-torch-tensor"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["angles", "rotation", "torch.tensor"]
# symptom = "only the translation is refined; the camera's angles keep their initial values and have no gradient"
# symptom_check = "pose.angles.grad is None"
# cause = "torch.tensor copies the numbers out of the graph, so the rotation matrix does not depend on the angles for autograd."
# fix = "build the matrix with torch.stack"
# ///
import math
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Intrinsics:
    focal: float = 1.4
    cx: float = 0.05
    cy: float = -0.02

    def project(self, points):
        depth = points[:, 2].clamp(min=1e-3)
        u = self.focal * points[:, 0] / depth + self.cx
        v = self.focal * points[:, 1] / depth + self.cy
        return torch.stack([u, v], dim=1)


class CameraPose(nn.Module):
    """World-to-camera transform from Euler angles and a translation."""

    def __init__(self, angles, translation):
        super().__init__()
        self.angles = nn.Parameter(angles.clone())  #! also
        self.translation = nn.Parameter(translation.clone())

    def rotation(self):
        roll, pitch, yaw = self.angles.unbind()
        cr, sr = roll.cos(), roll.sin()
        cp, sp = pitch.cos(), pitch.sin()
        cy, sy = yaw.cos(), yaw.sin()
        return torch.tensor([  #- here
#+         return torch.stack([
            cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr,  #! also
            sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr,  #! also
            -sp, cp * sr, cp * cr,  #! also
        ]).view(3, 3)  #! also

    def forward(self, world):
        return world @ self.rotation().T + self.translation  #! also


def make_scene(n_points, noise):
    world = torch.rand(n_points, 3) * 2 - 1
    world[:, 2] += 4.0
    truth = CameraPose(torch.tensor([0.10, -0.20, 0.15]), torch.tensor([0.2, -0.1, 0.3]))
    with torch.no_grad():
        pixels = camera.project(truth(world))
    return world, pixels + noise * torch.randn_like(pixels), truth


def refine(pose, world, pixels, iterations=300):
    optimizer = torch.optim.Adam([
        {"params": [pose.angles], "lr": 1e-2},
        {"params": [pose.translation], "lr": 3e-2},
    ])
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=20)
    for _ in range(iterations):
        optimizer.zero_grad()
        error = F.huber_loss(camera.project(pose(world)), pixels, delta=0.1)
        error.backward()
        optimizer.step()
        plateau.step(error.item())
        yield error.item()


torch.manual_seed(3)
camera = Intrinsics()
world, pixels, truth = make_scene(80, noise=2e-3)
pose = CameraPose(torch.zeros(3), torch.zeros(3))
curve = list(refine(pose, world, pixels))
angle_error = (pose.angles - truth.angles).abs().max().item() * 180 / math.pi
shift_error = (pose.translation - truth.translation).norm().item()
print(f"reprojection {curve[0]:.5f} -> {curve[-1]:.5f}")
print(f"angles off by {angle_error:.2f} degrees, translation by {shift_error:.3f}")
