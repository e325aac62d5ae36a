import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.lam * grad, None


torch.manual_seed(43)
features, label, domain = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)
opt = torch.optim.SGD([*features.parameters(), *label.parameters(), *domain.parameters()], lr=0.05)
for step in range(8):
    x, y, d = torch.randn(16, 6), torch.randint(0, 2, (16,)), torch.randint(0, 2, (16,))
    h = features(x).relu()
    loss = nn.functional.cross_entropy(label(h), y)
    loss = loss + nn.functional.cross_entropy(domain(Reverse.apply(h, step / 8)), d)
    opt.zero_grad()
    loss.backward()
    opt.step()
