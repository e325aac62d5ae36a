import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
learner = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
outer = torch.optim.Adam(learner.parameters(), lr=1e-3)


def task():
    scale, phase = torch.rand(1) * 2 + 0.5, torch.rand(1) * 3
    x = torch.rand(20, 1) * 6 - 3
    y = scale * torch.sin(x + phase)
    return (x[:10], y[:10]), (x[10:], y[10:])


def adapt(support, steps=2, rate=0.05):
    fast = dict(learner.named_parameters())
    x, y = support
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(learner, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
        fast = {name: value - rate * grad for (name, value), grad in zip(fast.items(), grads)}
    return fast


for step in range(4):
    outer.zero_grad()
    losses = []
    for _ in range(3):
        support, (xq, yq) = task()
        fast = adapt(support)
        losses.append(nn.functional.mse_loss(functional_call(learner, fast, (xq,)), yq))
    meta = torch.stack(losses).mean()
    meta.backward()
    outer.step()
    print(step, meta.item())
