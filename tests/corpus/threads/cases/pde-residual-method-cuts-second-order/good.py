import torch
from torch import nn


class PINN:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def derivative(self, u, x):
        (du,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
        return du

    def residual(self, x):
        x = x.requires_grad_(True)
        u = self.net(x)
        return self.derivative(u, x) - torch.cos(x)

    def boundary(self):
        return self.net(torch.zeros(1, 1)).pow(2).mean()

    def step(self, x):
        physics = self.residual(x).pow(2).mean()
        loss = physics + self.boundary()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return physics


torch.manual_seed(0)
pinn = PINN()
for _ in range(20):
    physics = pinn.step(torch.rand(32, 1) * 6)
print(physics.item())
