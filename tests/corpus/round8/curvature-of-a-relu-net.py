# /// case
# title = "A physics-informed network with ReLU is asked for its second derivative"
# category = "higher-order"
# kind = "piecewise-linear-second-derivative"
# kinds_also_ok = ["second-derivative-zero", "relu-in-pinn"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["ReLU", "u_xx", "residual"]
# symptom = "u_xx is zero everywhere"
# symptom_check = "bool((u_xx == 0).all())"
# cause = "A ReLU network is piecewise linear, its second derivative is zero, and the residual cannot teach it the equation."
# fix = "a smooth activation such as Tanh"
# ///
import math

import torch
import torch.nn as nn


class Pinn(nn.Module):
    """u'' = -pi^2 sin(pi x) on (0, 1) with u(0) = u(1) = 0, whose solution is sin(pi x)."""

    def __init__(self, width=24, depth=2):
        super().__init__()
        layers = [nn.Linear(1, width)]
        for _ in range(depth):
            layers += [nn.ReLU(), nn.Linear(width, width)]  #- here
        layers += [nn.ReLU(), nn.Linear(width, 1)]  #- here
#+             layers += [nn.Tanh(), nn.Linear(width, width)]
#+         layers += [nn.Tanh(), nn.Linear(width, 1)]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def boundary_loss(net):
    ends = torch.tensor([[0.0], [1.0]])
    return net(ends).square().mean()


torch.manual_seed(15)
net = Pinn()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(25):
    x = torch.rand(64, 1, requires_grad=True)
    u_xx = derivative(derivative(net(x), x), x)  #! also
    residual = u_xx + math.pi ** 2 * torch.sin(math.pi * x)
    loss = residual.square().mean() + 100 * boundary_loss(net)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item())
