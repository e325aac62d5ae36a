import torch
import torch.nn.functional as F
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self, features, hidden=32, classes=3):
        super().__init__()
        self.extract = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.label = nn.Linear(hidden, classes)
        self.domain = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        h = self.extract(x)
        return self.label(h), self.domain(Reverse.apply(h, strength)).squeeze(-1)


def scanner(n, centres, shift):
    y = torch.randint(0, len(centres), (n,))
    return centres[y] + shift + 0.6 * torch.randn(n, centres.shape[1]), y


torch.manual_seed(7)
centres = 2 * torch.randn(3, 8)
source_x, source_y = scanner(256, centres, 0.0)
target_x, target_y = scanner(256, centres, torch.linspace(-0.5, 0.5, 8))
model = DANN(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
steps = 80
for step in range(steps):
    strength = 2 / (1 + torch.exp(torch.tensor(-10.0 * step / steps)).item()) - 1
    s, t = torch.randint(0, 256, (48,)), torch.randint(0, 256, (48,))
    logits, origin = model(torch.cat([source_x[s], target_x[t]]), strength)
    which = torch.cat([torch.zeros(48), torch.ones(48)])
    task = F.cross_entropy(logits[:48], source_y[s])
    confusion = F.binary_cross_entropy_with_logits(origin, which)
    optimizer.zero_grad()
    (task + 0.3 * confusion).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    accuracy = (model(target_x, 0.0)[0].argmax(1) == target_y).float().mean().item()
print("task", task.item(), "confusion", confusion.item(), "target accuracy", accuracy)
