import torch
import torch.nn as nn


class SAM:
    def __init__(self, parameters, base, rho=0.05, **settings):
        self.parameters = list(parameters)
        self.base = base(self.parameters, **settings)
        self.rho = rho

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.parameters]).norm()
        self.moves = [self.rho * p.grad / (norm + 1e-12) for p in self.parameters]
        for p, move in zip(self.parameters, self.moves):
            p.add_(move)

    @torch.no_grad()
    def descend(self):
        for p, move in zip(self.parameters, self.moves):
            p.sub_(move)
        self.base.step()

    def zero_grad(self):
        self.base.zero_grad()


def build(depth=3, width=32):
    layers = [nn.Linear(16, width)]
    for _ in range(depth - 1):
        layers += [nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(width, 3))


def sharpness_aware_step(model, optimizer, criterion, x, y):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.climb()
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.descend()
    return loss.item()


torch.manual_seed(7)
model = build()
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
x = torch.randn(120, 16)
y = x[:, :3].argmax(1)
for epoch in range(4):
    values = [sharpness_aware_step(model, optimizer, criterion, x[r], y[r]) for r in torch.randperm(120).split(24)]
    print(f"epoch {epoch} {sum(values) / len(values):.4f}")
