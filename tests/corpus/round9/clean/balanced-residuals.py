import torch
from torch import nn
from torch.autograd import grad


class Beam(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))

    def losses(self, inside, ends):
        inside = inside.requires_grad_()
        u = self.net(inside)
        u1, = grad(u.sum(), inside, create_graph=True)
        u2, = grad(u1.sum(), inside, create_graph=True)
        residual = u2 + torch.sin(torch.pi * inside)
        return {"equation": residual.square().mean(), "ends": self.net(ends).square().mean()}


class Balancer:
    def __init__(self, names, momentum=0.7):
        self.weights = {name: 1.0 for name in names}
        self.momentum = momentum

    def update(self, losses, parameters):
        sizes = {}
        for name, loss in losses.items():
            parts = grad(loss, parameters, retain_graph=True, allow_unused=True)
            sizes[name] = sum(p.square().sum() for p in parts if p is not None).sqrt().item()
        total = sum(sizes.values())
        for name, size in sizes.items():
            new = total / (size + 1e-8)
            self.weights[name] = self.momentum * self.weights[name] + (1 - self.momentum) * new


torch.manual_seed(20)
beam, balancer = Beam(), Balancer(["equation", "ends"])
parameters = list(beam.parameters())
optimizer = torch.optim.Adam(parameters, lr=5e-3)
ends = torch.tensor([[0.0], [1.0]])
for step in range(20):
    losses = beam.losses(torch.rand(40, 1), ends)
    if step % 5 == 0:
        balancer.update(losses, parameters)
    optimizer.zero_grad()
    sum(balancer.weights[name] * loss for name, loss in losses.items()).backward()
    optimizer.step()
print({name: round(loss.item(), 4) for name, loss in losses.items()}, balancer.weights)
