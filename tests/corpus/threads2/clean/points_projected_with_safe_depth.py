import torch
from torch import nn

torch.manual_seed(45)
pose = nn.Linear(3, 3)
opt = torch.optim.Adam(pose.parameters(), lr=1e-2)


def project(points, eps=1e-6):
    z = points[:, 2:]
    visible = z > eps
    safe = torch.where(visible, z, torch.ones_like(z))
    return torch.where(visible, points[:, :2] / safe, torch.zeros_like(points[:, :2])), visible.squeeze(1)


for step in range(5):
    world = torch.randn(30, 3)
    world[:3, 2] = 0
    pixels, visible = project(pose(world) + torch.tensor([0.0, 0.0, 1.0]))
    loss = (pixels - world[:, :2])[visible].abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
