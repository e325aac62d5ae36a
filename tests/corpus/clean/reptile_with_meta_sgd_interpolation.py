import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))


def sine():
    phase, amp = torch.rand(1).item() * 6.28, torch.rand(1).item() * 4.9 + 0.1
    return lambda x: amp * torch.sin(x + phase)


xs = torch.linspace(-5, 5, 50).unsqueeze(1)
iterations = 6
for it in range(iterations):
    before = copy.deepcopy(model.state_dict())
    f = sine()
    y = f(xs)
    inner = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(2):
        for idx in torch.randperm(50).split(10):
            inner.zero_grad()
            (model(xs[idx]) - y[idx]).pow(2).mean().backward()
            inner.step()
    after = model.state_dict()
    outer = 0.1 * (1 - it / iterations)
    model.load_state_dict({k: before[k] + (after[k] - before[k]) * outer for k in before})

probe = copy.deepcopy(model)
f = sine()
opt = torch.optim.SGD(probe.parameters(), lr=0.02)
for _ in range(4):
    loss = (probe(xs[::5]) - f(xs[::5])).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
