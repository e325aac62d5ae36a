import torch
import torch.nn as nn


def pgd(model, x, y, eps=0.3, steps=3):
    delta = torch.zeros_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = nn.functional.cross_entropy(model(x + delta), y)
        (grad,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + eps / 2 * grad.sign()).clamp(-eps, eps)
    return (x + delta).detach()


torch.manual_seed(11)
model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(90, 6)
y = x[:, :3].argmax(1)
for epoch in range(4):
    for xb, yb in zip(x.split(30), y.split(30)):
        model.eval()
        adv = pgd(model, xb, yb)
        model.train()
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(adv), yb)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
