import math
from contextlib import contextmanager

import torch
from torch import nn
import torch.nn.functional as F


class Adapter(nn.Module):
    """A frozen linear layer with a low-rank correction, which can be folded into it for serving."""

    def __init__(self, base, rank, alpha, dropout=0.05):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.scale, self.dropout = alpha / rank, nn.Dropout(dropout)
        self.merged = False

    @torch.no_grad()
    def fold(self, sign):
        self.base.weight.add_(self.b @ self.a, alpha=sign * self.scale)
        self.merged = sign > 0

    def forward(self, x):
        if self.merged:
            return self.base(x)
        return self.base(x) + self.scale * F.linear(F.linear(self.dropout(x), self.a), self.b)


def adapters(model):
    return [module for module in model.modules() if isinstance(module, Adapter)]


@contextmanager
def served(model):
    was_training = model.training
    model.eval()
    for adapter in adapters(model):
        adapter.fold(+1)
    try:
        with torch.inference_mode():
            yield model
    finally:
        for adapter in adapters(model):
            adapter.fold(-1)
        model.train(was_training)


def adapt(model, rank=3, alpha=6):
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear):
            setattr(model, name, Adapter(child, rank, alpha))
    return model


def perceptron(features=10, hidden=40, classes=3):
    return nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                         nn.Linear(hidden, classes))


def tickets(count, rotation):
    x = torch.randn(count, 10)
    score = torch.stack([x @ rotation[:, 0], (x @ rotation[:, 1]).abs() - 0.8, x @ rotation[:, 2]], dim=1)
    return x, score.argmax(1)


def train(model, data, steps, lr, evaluate=None):
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=lr)
    x, y = data
    model.train()
    for step in range(steps):
        rows = torch.randint(0, len(y), (64,))
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        if evaluate and step % 50 == 49:
            evaluate(step + 1)


torch.manual_seed(38)
rotation, _ = torch.linalg.qr(torch.randn(10, 10))
model = perceptron()
train(model, tickets(2000, rotation), steps=200, lr=3e-3)
customer = rotation + 0.25 * torch.randn(10, 10)
test_x, test_y = tickets(500, customer)


def report(step):
    with served(model):
        print(f"step {step} accuracy {model(test_x).argmax(1).eq(test_y).float().mean().item():.3f}")


adapt(model)
print("trainable", sum(p.numel() for p in model.parameters() if p.requires_grad))
report(0)
train(model, tickets(400, customer), steps=150, lr=5e-3, evaluate=report)
