import torch
from torch import nn


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def hvp(loss, params, vector):
    first = flat(torch.autograd.grad(loss, params))
    return flat(torch.autograd.grad(first @ vector, params, retain_graph=True))


def largest_eigenvalue(model, x, y, steps=6):
    params = list(model.parameters())
    v = torch.randn(sum(p.numel() for p in params))
    for _ in range(steps):
        v = v / v.norm()
        loss = nn.functional.mse_loss(model(x), y)
        v = hvp(loss, params, v)
    return v.norm().item()


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
print(largest_eigenvalue(model, torch.randn(30, 4), torch.randn(30, 1)))
