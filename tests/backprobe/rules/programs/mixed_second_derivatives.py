"""BP345 mixed-second-derivatives."""

_HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
"""

PROGRAMS = {
    "heat equation, the columns picked afterwards": _HEAD
    + """
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
def diff(u, z):
    return torch.autograd.grad(u, z, grad_outputs=torch.ones_like(u), create_graph=True)[0]
def residual(z):
    du = diff(net(z), z)
    ddu = diff(du, z)
    return du[:, 1] - ddu[:, 0]
for _ in range(3):
    loss = residual(torch.rand(30, 2, requires_grad=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""".replace("create_graph=True)[0]\ndef", "create_graph=True)[0]  # <- BP345\ndef"),
    "right: a column is differentiated": _HEAD
    + """
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
def diff(u, z):
    return torch.autograd.grad(u, z, grad_outputs=torch.ones_like(u), create_graph=True)[0]
def residual(z):
    du = diff(net(z), z)
    u_x, u_t = du[:, :1], du[:, 1:]
    return u_t - diff(u_x, z)[:, :1]
for _ in range(3):
    loss = residual(torch.rand(30, 2, requires_grad=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: a product with a direction": _HEAD
    + """
net = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(3):
    x = torch.randn(10, 3, requires_grad=True)
    score, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    v = torch.randn_like(x).sign()
    hv, = torch.autograd.grad((score * v).sum(), x, create_graph=True)
    loss = (hv * v).sum(1).mean() + 0.5 * score.pow(2).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: a network that takes one value at a time": """
import torch
from torch import nn

torch.manual_seed(0)
u = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(u.parameters(), lr=1e-3)
for _ in range(4):
    t = torch.rand(6, 5, requires_grad=True)
    y = u(t.unsqueeze(-1)).squeeze(-1)
    dy = torch.autograd.grad(y.sum(), t, create_graph=True)[0]
    ddy = torch.autograd.grad(dy.sum(), t, create_graph=True)[0]
    loss = (ddy + y).pow(2).mean() + (y[:, 0] - t[:, 0].sin()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the trace by random directions": """
import torch
from torch import nn

torch.manual_seed(0)
phi = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 1))
opt = torch.optim.Adam(phi.parameters(), lr=1e-3)
for _ in range(4):
    x = torch.randn(20, 3, requires_grad=True)
    score = torch.autograd.grad(phi(x).sum(), x, create_graph=True)[0]
    v = torch.randint(0, 2, x.shape).float() * 2 - 1
    hv = torch.autograd.grad(score, x, grad_outputs=v, create_graph=True)[0]
    loss = ((hv * v).sum(1) + 0.5 * score.pow(2).sum(1)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
