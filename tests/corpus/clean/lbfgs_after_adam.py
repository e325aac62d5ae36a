import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
inside = torch.linspace(0, 1, 40).unsqueeze(1).requires_grad_()
edge = torch.tensor([[0.0], [1.0]])


def residual():
    u = net(inside)
    (du,) = torch.autograd.grad(u, inside, torch.ones_like(u), create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), inside, create_graph=True)
    return (ddu + torch.sin(3.14159 * inside)).pow(2).mean() + 10 * net(edge).pow(2).mean()


adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(8):
    adam.zero_grad()
    loss = residual()
    loss.backward()
    adam.step()

lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=5, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    value = residual()
    value.backward()
    return value


for _ in range(2):
    print(float(lbfgs.step(closure)))
