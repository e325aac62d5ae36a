"""BP223 second-derivative-zero."""

_PINN = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(1, 20), nn.{kind}(), nn.Linear(20, 1)){mark}
for turn in range(3):
    x = torch.rand(30, 1, requires_grad=True)
    u = net(x){more}
    u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
    (u_xx + x.detach()).square().mean().backward()
"""


def _pinn(kind: str, more: str = "", *, found: bool = False) -> str:
    return _PINN.format(kind=kind, more=more, mark="  # <- BP223" if found else "")


PROGRAMS = {
    "the input also enters by a square": _pinn("ReLU", " + x.square()"),
    "the input enters by a square in one turn": _pinn("ReLU", " + (x.square() if turn else x.square() * 0)"),
    "tanh": _pinn("Tanh"),
    "a straight line is meant": """
import torch
x = torch.rand(30, 1, requires_grad=True)
weight = torch.ones(1, requires_grad=True)
u = (x * weight) + 0 * x.square()
u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
print(u_xx)
""",
    "relu, and the input goes round it with a factor of zero": _pinn("ReLU", " + 0 * x.square()", found=True),
    "a first derivative that is zero": """
import torch
x = torch.rand(5, requires_grad=True)
(slope,) = torch.autograd.grad((x - 2).relu().sum(), x)
print(slope)
""",
    "the second derivative by a weight": """
import torch
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
(slope,) = torch.autograd.grad((weight.relu() * weight.square() * 0).sum(), weight, create_graph=True)
(bend,) = torch.autograd.grad(slope.sum(), weight, create_graph=True)
print(bend)
""",
    "a helper differentiates": """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))  # <- BP223
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def slope(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]
for _ in range(3):
    x = torch.rand(16, 1, requires_grad=True)
    bend = slope(slope(net(x), x), x)
    opt.zero_grad()
    ((bend + 1).pow(2).mean() + net(x).pow(2).mean()).backward()
    opt.step()
""",
    "the function in forward": """
import torch
from torch import nn
import torch.nn.functional as F

class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1, 20), nn.Linear(20, 1)

    def forward(self, x):
        return self.b(
            F.relu(self.a(x))  # <- BP223
        )

net = Field()
for turn in range(3):
    x = torch.rand(30, 1, requires_grad=True)
    u_x = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
    (u_xx + x.detach()).square().mean().backward()
""",
    "the class is given by a default": """
import torch
from torch import nn

def build(width=20,
          act=nn.ReLU):  # <- BP223
    return nn.Sequential(nn.Linear(1, width), act(), nn.Linear(width, 1))

net = build()
for turn in range(3):
    x = torch.rand(30, 1, requires_grad=True)
    u_x = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
    (u_xx + x.detach()).square().mean().backward()
""",
    "two networks are built, and which one it is the source does not say": """
import torch
from torch import nn

def one():
    return nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 1))

def other():
    return nn.Sequential(nn.Linear(1, 9), nn.ReLU(), nn.Linear(9, 1))

nets = [one(), other()]
for turn in range(3):
    x = torch.rand(30, 1, requires_grad=True)
    u_x = torch.autograd.grad(nets[1](x).sum(), x, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]  # <- BP223
    (u_xx + x.detach()).square().mean().backward()
""",
}
