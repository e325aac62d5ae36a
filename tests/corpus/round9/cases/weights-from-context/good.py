import math

import torch
from torch import nn
from torch.func import functional_call


class HyperNetwork(nn.Module):
    def __init__(self, context, shapes):
        super().__init__()
        self.shapes = shapes
        self.sizes = [math.prod(shape) for shape in shapes.values()]
        self.net = nn.Sequential(nn.Linear(context, 24), nn.Tanh(), nn.Linear(24, sum(self.sizes)))

    def forward(self, context):
        pieces = self.net(context).split(self.sizes)
        return {name: piece.view(shape) for piece, (name, shape) in zip(pieces, self.shapes.items())}


def sinusoid(task, points=20):
    amplitude, phase = task
    x = torch.linspace(-2, 2, points).unsqueeze(1)
    return x, amplitude * torch.sin(x + phase)


def predict(hyper, main, task, x):
    weights = hyper(task)
    return functional_call(main, weights, (x,))


torch.manual_seed(3)
main = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
hyper = HyperNetwork(2, {name: p.shape for name, p in main.named_parameters()})
optimizer = torch.optim.AdamW(hyper.parameters(), lr=5e-3, weight_decay=0.0)
tasks = torch.rand(32, 2) * torch.tensor([2.0, 3.0])
curve = []
for step in range(20):
    optimizer.zero_grad()
    total = 0.0
    for task in tasks[torch.randint(32, (4,))]:
        x, y = sinusoid(task)
        loss = (predict(hyper, main, task, x) - y).square().mean() / 4
        loss.backward()
        total += loss.item()
    optimizer.step()
    curve.append(total)
print(" ".join(f"{value:.3f}" for value in curve))
