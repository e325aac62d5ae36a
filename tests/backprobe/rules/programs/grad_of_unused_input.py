"""BP323 grad-of-unused-input."""

PROGRAMS = {
    "a function differentiates by what it is handed": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

def slope(u, by):
    return torch.autograd.grad(u, by, torch.ones_like(u), create_graph=True)[0]

points = torch.rand(6, 2, requires_grad=True)
x = points[:, :1]
u = net(points)
u_x = slope(u, x)  # <- BP323
(u_x - 1).pow(2).mean().backward()
""",
    "a function is handed what went in": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

def slope(u, by):
    return torch.autograd.grad(u, by, torch.ones_like(u), create_graph=True)[0]

points = torch.rand(6, 2, requires_grad=True)
u = net(points)
u_x = slope(u, points)[:, :1]
(u_x - 1).pow(2).mean().backward()
""",
}
