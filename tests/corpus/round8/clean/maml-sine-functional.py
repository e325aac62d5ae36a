import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


def task(n=10):
    amplitude, phase = 0.5 + 2 * torch.rand(1), 3.14 * torch.rand(1)
    x = torch.rand(2 * n, 1) * 8 - 4
    y = amplitude * torch.sin(x + phase)
    return (x[:n], y[:n]), (x[n:], y[n:])


def adapt(net, params, support, rate, steps):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(net, params, (support[0],)), support[1])
        grads = torch.autograd.grad(loss, tuple(params.values()), create_graph=True)
        params = {k: p - rate * g for (k, p), g in zip(params.items(), grads)}
    return params


torch.manual_seed(9)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
meta = torch.optim.Adam(net.parameters(), lr=3e-3)
for iteration in range(10):
    meta.zero_grad()
    total = 0.0
    for _ in range(4):
        support, query = task()
        fast = adapt(net, dict(net.named_parameters()), support, 0.05, 2)
        loss = F.mse_loss(functional_call(net, fast, (query[0],)), query[1])
        (loss / 4).backward()
        total += loss.item() / 4
    meta.step()
    print(iteration, total)
