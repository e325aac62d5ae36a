import math

import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DomainAdaptedPose(nn.Module):
    def __init__(self, sensors, width=32):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(sensors, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.pose = nn.Linear(width, 2)
        self.domain = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, strength):
        h = self.features(x)
        return self.pose(h), self.domain(Reverse.apply(h, strength)).squeeze(-1)


def sensors(n, real):
    pose = torch.randn(n, 2)
    reading = torch.cat([pose, pose.sin(), pose.prod(1, keepdim=True)], 1)
    bias = torch.full((n, 3), 1.5 if real else -1.5)
    return torch.cat([reading, bias], 1) + 0.05 * torch.randn(n, 8), pose


torch.manual_seed(66)
sim_x, sim_pose = sensors(512, real=False)
real_x, real_pose = sensors(512, real=True)
model = DomainAdaptedPose(8)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
bce = nn.BCEWithLogitsLoss()
label = torch.cat([torch.zeros(64), torch.ones(64)])
curve = []
STEPS = 250
for step in range(STEPS):
    strength = 0.2 * (2 / (1 + math.exp(-10 * step / STEPS)) - 1)
    a, b = torch.randint(512, (64,)), torch.randint(512, (64,))
    pose, domain = model(torch.cat([sim_x[a], real_x[b]]), strength)
    pose_loss = nn.functional.mse_loss(pose[:64], sim_pose[a])
    domain_loss = bce(domain, label)
    opt.zero_grad()
    (pose_loss + domain_loss).backward()
    opt.step()
    curve.append((pose_loss.item(), domain_loss.item()))
with torch.no_grad():
    transfer = nn.functional.mse_loss(model(real_x, 0.0)[0], real_pose).item()
print("pose %.4f domain %.4f" % curve[0], "->", "pose %.4f domain %.4f" % curve[-1], "real", transfer)
