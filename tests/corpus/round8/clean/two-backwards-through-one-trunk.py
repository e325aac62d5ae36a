import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
trunk = nn.Sequential(nn.Linear(8, 24), nn.Tanh())
shape, size = nn.Linear(24, 3), nn.Linear(24, 1)
parameters = [*trunk.parameters(), *shape.parameters(), *size.parameters()]
optimizer = torch.optim.Adam(parameters, lr=4e-3)
x = torch.randn(96, 8)
kind, amount = x[:, :3].argmax(1), x[:, 3:4].exp().clamp(max=5)


def trunk_gradient():
    return torch.cat([p.grad.flatten() for p in trunk.parameters()])


shares = []
for epoch in range(4):
    for rows in torch.randperm(96).split(24):
        z = trunk(x[rows])
        first = F.cross_entropy(shape(z), kind[rows])
        second = F.smooth_l1_loss(size(z), amount[rows])
        optimizer.zero_grad()
        first.backward(retain_graph=True)
        before = trunk_gradient().clone()
        second.backward()
        share = before.norm() / trunk_gradient().norm()
        shares.append(share.item())
        optimizer.step()
    print(epoch, first.item(), second.item(), shares[-1])
