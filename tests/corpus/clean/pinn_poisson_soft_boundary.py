import math

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 20), nn.Linear(20, 20), nn.Linear(20, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x)


def derivative(y, x):
    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True)[0]


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
x_b = torch.tensor([[0.0], [1.0]])
u_b = torch.zeros(2, 1)
for it in range(20):
    x = torch.rand(32, 1).requires_grad_()
    u = net(x)
    u_xx = derivative(derivative(u, x), x)
    f = u_xx + math.pi**2 * torch.sin(math.pi * x)
    loss_pde = (f**2).mean()
    loss_bc = ((net(x_b) - u_b) ** 2).mean()
    loss = loss_pde + 10 * loss_bc
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 10 == 0:
        print(it, loss_pde.item(), loss_bc.item())
with torch.no_grad():
    xs = torch.linspace(0, 1, 11).unsqueeze(1)
    print((net(xs) - torch.sin(math.pi * xs)).abs().max())
torch.set_default_dtype(torch.float32)
