import torch
import torch.nn as nn
import torch.nn.functional as F


def pgd(model, x, y, eps=0.1, steps=3):
    delta = torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model(x + delta), y)
        (grad,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + 0.05 * grad.sign()).clamp(-eps, eps)
    return (x + delta).clamp(0, 1)


torch.manual_seed(14)
model = nn.Sequential(nn.Flatten(), nn.Linear(25, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in range(4):
    x, y = torch.rand(10, 1, 5, 5), torch.randint(0, 3, (10,))
    x_adv = pgd(model, x, y)
    loss = F.cross_entropy(model(x_adv), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
