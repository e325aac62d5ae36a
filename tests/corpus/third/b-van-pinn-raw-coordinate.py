# /// case
# title = "PINN with coordinates in metres saturates its tanh units"
# category = "vanishing-exploding"
# kind = "saturated-activation"
# severity = "warning"
# names = ["x", "length", "tanh", "inp"]
# difficulty = "hard"
# symptom = "Residual gradients vanish for nearly all points; the network fits only the boundary value; silent."
# symptom_check = "saturated > 0.8"
# cause = "The coordinate runs from 0 to 500; with first-layer weights of order one all tanh units are saturated, du/dx and the parameter gradients are 0."
# fix = "Scale the coordinate to [-1, 1] inside the network."
# evidence = [{ url = "https://github.com/mukul-rathi/deep-learning-tutorials/issues/2" }, { url = "https://github.com/guevara/read-it-later/issues/5625" }]
# ///
"""Physics-informed network: decay of a concentration along a pipe, u' = -k u, u(0) = 1."""
import torch
from torch import nn


class PINN(nn.Module):
    def __init__(self, length, width=24):
        super().__init__()
        self.length = length
        self.inp = nn.Linear(1, width)  #! also
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def first(self, x):
#+         x = 2 * x / self.length - 1
        return torch.tanh(self.inp(x))  #! here

    def forward(self, x):
        return self.out(torch.tanh(self.mid(self.first(x))))


class PipeProblem:
    def __init__(self, k=0.006, length=500.0):
        self.k, self.length = k, length

    def collocation(self, n, gen):
        return (self.length * torch.rand(n, 1, generator=gen)).requires_grad_(True)  #! here

    def residual(self, net, x):
        u = net(x)
        (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        return (du + self.k * u) * self.length  #! also

    def boundary(self, net):
        return net(torch.zeros(1, 1)) - 1.0


def solve(problem, steps, lr=5e-3):
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    net = PINN(problem.length)
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    trace = []
    for _ in range(steps):
        x = problem.collocation(64, gen)
        loss = problem.residual(net, x).pow(2).mean() + 10 * problem.boundary(net).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        trace.append(loss.item())
    return net, trace


net, trace = solve(PipeProblem(), steps=60)
with torch.no_grad():
    grid = torch.linspace(10, 500, 50).unsqueeze(1)
    saturated = (net.first(grid).abs() > 0.999).float().mean().item()
print(trace[0], trace[-1], "saturated share", saturated)
