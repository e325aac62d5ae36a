"""A line fitted by hand-written gradient descent, 200 steps."""

import torch

torch.manual_seed(0)
x = torch.linspace(-1, 1, 64)
y = 3 * x + 0.5
w = torch.zeros(1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for _ in range(200):
    loss = ((w * x + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
    w.grad = None
    b.grad = None
