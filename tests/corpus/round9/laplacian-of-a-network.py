# /// case
# title = "The Laplacian is the sum over the whole Hessian"
# category = "higher-order"
# kind = "laplacian-includes-mixed-derivatives"
# kinds_also_ok = ["sum-over-hessian", "wrong-second-derivative"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["laplacian", "slope"]
# symptom = "the residual has the mixed derivatives in it; the network solves another equation"
# symptom_check = "(laplacian(net, points) - torch.func.vmap(torch.func.hessian(net.__call__))(points.detach())[:, 0].diagonal(0, 1, 2).sum(1)).abs().max().item() > 0.01"
# cause = "The gradient of the sum of all components is the row sums of the Hessian, so the result is u_xx + 2 u_xy + u_yy."
# fix = "differentiate each component on its own, and take that coordinate only"
# ///
import math

import torch
from torch import nn
from torch.autograd import grad


class Ansatz(nn.Module):
    """Vanishes on the edge of the unit square."""

    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        wall = (x * (1 - x)).prod(-1, keepdim=True)
        return wall * self.body(x)


def laplacian(net, x):
    u = net(x)
    slope, = grad(u.sum(), x, create_graph=True)
    return grad(slope.sum(), x, create_graph=True)[0].sum(1)  #- here
#+     return sum(grad(slope[:, k].sum(), x, create_graph=True)[0][:, k] for k in range(x.shape[1]))


def load(x):
    return -2 * math.pi ** 2 * torch.sin(math.pi * x).prod(1)


class Sampler:
    def __init__(self, count, seed):
        self.engine = torch.quasirandom.SobolEngine(2, scramble=True, seed=seed)
        self.count = count

    def __iter__(self):
        while True:
            yield self.engine.draw(self.count).requires_grad_()


torch.manual_seed(30)
net = Ansatz()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
for iteration, points in zip(range(25), Sampler(128, 5)):
    residual = laplacian(net, points) - load(points)  #! also
    loss = residual.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if iteration % 6 == 0:
        print(f"{iteration:2d} {loss.item():.3f}")
with torch.no_grad():
    print("centre", net(torch.tensor([[0.5, 0.5]])).item())
