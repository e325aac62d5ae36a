# /// case
# title = "The second derivative is asked of a first one without a graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["second-derivative-without-graph"]
# severity = "error"
# names = ["derivative", "create_graph"]
# symptom = "the second autograd.grad raises"
# raises = "RuntimeError"
# raises_message = "does not require grad"
# cause = "the first derivative was computed without create_graph"
# fix = "create_graph=True"
# ///
import math

import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return x * (1 - x) * self.layers(x)


def derivative(u, x, order=1):
    for _ in range(order):
        u = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True)[0]  #- here
#+         u = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), create_graph=True)[0]
    return u


def residual(field, x):
    return derivative(field(x), x, order=2) + math.pi ** 2 * torch.sin(math.pi * x)  #! also


torch.manual_seed(26)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=5e-3)
for step in range(20):
    x = torch.rand(50, 1, requires_grad=True)
    loss = residual(field, x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item())
