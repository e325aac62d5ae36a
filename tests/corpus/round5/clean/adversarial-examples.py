import torch
from torch import nn

torch.manual_seed(32)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def attack(x, y, eps=0.1, steps=3):
    adv = x + torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        adv = adv.detach().requires_grad_(True)
        nn.functional.cross_entropy(model(adv), y).backward()
        adv = x + (adv + 0.04 * adv.grad.sign() - x).clamp(-eps, eps)
    return adv.detach()


for step in range(8):
    x = torch.randn(24, 12)
    y = x[:, :4].argmax(1)
    adv = attack(x, y)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(adv), y)
    loss.backward()
    optimizer.step()
print(loss.item())
