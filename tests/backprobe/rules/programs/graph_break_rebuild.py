"""BP605 graph-break-rebuild."""

PROGRAMS = {
    "the old constructor": """
import torch
from torch import nn

a, b = nn.Linear(3, 1), nn.Linear(1, 1)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for x in torch.randn(3, 3):
    value = a(x)
    again = torch.Tensor([value])  # <- BP605
    loss = b(again).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "as_tensor of one tensor keeps its history": """
import torch
from torch import nn

a, b = nn.Linear(3, 1), nn.Linear(1, 1)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for x in torch.randn(3, 3):
    loss = b(torch.as_tensor(a(x))).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a rebuilt loss raises": """
import torch
w = torch.ones(3, requires_grad=True)
loss = torch.tensor((w * 2).sum())  # <- BP605
loss.backward()
""",
    "rebuilt and flagged in the middle, with more behind it": """
import torch
from torch import nn

a, b = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for x in torch.randn(3, 5, 3):
    h = torch.tensor(a(x).tolist(), requires_grad=True)  # <- BP603
    loss = b(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a list of tensors and a number": """
import torch

torch.manual_seed(0)
start = torch.tensor(0.3, requires_grad=True)
opt = torch.optim.SGD([start], lr=0.1)
wanted = torch.tensor([0.2, 0.8, 0.1])
rate = torch.tensor(1.0, requires_grad=True)
opt.add_param_group({"params": [rate]})
for _ in range(3):
    opt.zero_grad()
    share = start.sigmoid()
    state = torch.tensor([1 - share, share, 0.0])  # <- BP605
    loss = (state * rate - wanted).square().sum()
    loss.backward()
    opt.step()
""",
}

_CAMERA = """
import torch
from torch import nn


class Lens:
    def __init__(self, focal):
        self.focal = focal

    def project(self, points):
        return self.focal * points[:, :2] / points[:, 2:].clamp(min=1e-3)


class Pose(nn.Module):
    def __init__(self, angle):
        super().__init__()
        self.angle, self.shift = nn.Parameter(torch.tensor(angle)), nn.Parameter(torch.zeros(3))

    def turn(self):
        cos, sin, one, none = self.angle.cos(), self.angle.sin(), torch.ones(()), torch.zeros(())
        return {made}

    def forward(self, world):
        return world @ self.turn() + self.shift


lens, world = Lens(1.4), torch.rand(20, 3) + 2
with torch.no_grad():
    pixels = lens.project(Pose(0.3)(world))
pose = Pose(0.0)
optimizer = torch.optim.SGD(pose.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    (lens.project(pose(world)) - pixels).square().mean().backward()
    optimizer.step()
"""

PROGRAMS |= {
    "a helper makes the target without gradients, too": _CAMERA.format(
        made="torch.tensor([cos, sin, none, -sin, cos, none, none, none, one]).view(3, 3)  # <- BP605"
    ),
    "a helper makes the target without gradients, and nothing is rebuilt": _CAMERA.format(
        made="torch.stack([cos, sin, none, -sin, cos, none, none, none, one]).view(3, 3)"
    ),
    "a function scales what is trained and what is wanted": """
import torch
from torch import nn


def scaled(x):
    return (x - x.mean()) / (x.std() + 1e-3)


net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.no_grad():
    wanted = scaled(torch.randn(8, 3))
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    given = torch.tensor(net(x).tolist(), requires_grad=True)  # <- BP603
    (scaled(given) - wanted).square().mean().backward()
    optimizer.step()
""",
}
