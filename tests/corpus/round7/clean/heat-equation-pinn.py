import torch
import torch.nn as nn


class HeatNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.log_alpha = nn.Parameter(torch.tensor(-1.0))

    def forward(self, x, t):
        return self.body(torch.cat([x, t], dim=1))


def gradient(y, *xs):
    return torch.autograd.grad(y, xs, torch.ones_like(y), create_graph=True)


torch.manual_seed(120)
model = HeatNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x0 = torch.linspace(0, 1, 20).unsqueeze(1)
for step in range(15):
    x = torch.rand(40, 1, requires_grad=True)
    t = torch.rand(40, 1, requires_grad=True)
    u = model(x, t)
    u_x, u_t = gradient(u, x, t)
    (u_xx,) = gradient(u_x, x)
    physics = (u_t - model.log_alpha.exp() * u_xx).square().mean()
    initial = (model(x0, torch.zeros_like(x0)) - torch.sin(3.1416 * x0)).square().mean()
    loss = physics + 5 * initial
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(physics.item(), initial.item(), model.log_alpha.exp().item())
