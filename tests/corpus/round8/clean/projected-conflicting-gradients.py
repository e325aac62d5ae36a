import torch
import torch.nn as nn
import torch.nn.functional as F


def flat(grads):
    return torch.cat([g.flatten() for g in grads])


def project(grads):
    """PCGrad: takes from each task's gradient its component against the others."""
    out = []
    for i, g in enumerate(grads):
        g = g.clone()
        for j, other in enumerate(grads):
            dot = torch.dot(g, other)
            if i != j and dot < 0:
                g -= dot / other.square().sum() * other
        out.append(g)
    return torch.stack(out).mean(0)


def assign(parameters, vector):
    start = 0
    for p in parameters:
        p.grad = vector[start:start + p.numel()].view_as(p).clone()
        start += p.numel()


torch.manual_seed(16)
net = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
parameters = list(net.parameters())
optimizer = torch.optim.Adam(parameters, lr=5e-3)
x = torch.randn(64, 5)
for step in range(15):
    output = net(x)
    losses = [F.mse_loss(output[:, 0], x[:, 0] ** 2), F.l1_loss(output.sum(1), -x[:, 1])]
    grads = [flat(torch.autograd.grad(loss, parameters, retain_graph=True)) for loss in losses]
    assign(parameters, project(grads))
    optimizer.step()
    if step % 5 == 0:
        print(step, [loss.item() for loss in losses])
