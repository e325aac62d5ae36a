# /// case
# title = "Derivative helper of a PINN without create_graph: the residual does not train"
# category = "helper"
# kind = "missing-create-graph"
# kinds_also_ok = ["constant-loss-term", "root-without-history"]
# severity = "warning"
# names = ["derivative", "residual"]
# symptom = "the residual term depends on the network only through u"
# symptom_check = "torch.autograd.grad(pinn.residual(torch.rand(4, 1)).sum(), pinn.net[2].weight, allow_unused=True)[0] is None"
# cause = "du/dx is a constant for autograd"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/apache/mxnet/pull/15109", title = "[DOC] refine autograd docs" },
# ]
# ///
import torch
from torch import nn


class PINN:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def derivative(self, u, x):
        (du,) = torch.autograd.grad(u, x, torch.ones_like(u), retain_graph=True)  #- here
#+         (du,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
        return du

    def residual(self, x):
        x = x.requires_grad_(True)
        u = self.net(x)
        return self.derivative(u, x) - torch.cos(x)  #! also

    def boundary(self):
        return self.net(torch.zeros(1, 1)).pow(2).mean()

    def step(self, x):
        physics = self.residual(x).pow(2).mean()
        loss = physics + self.boundary()  #! also
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return physics


torch.manual_seed(0)
pinn = PINN()
for _ in range(20):
    physics = pinn.step(torch.rand(32, 1) * 6)
print(physics.item())
