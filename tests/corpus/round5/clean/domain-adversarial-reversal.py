import torch
import torch.nn.functional as F
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.lambd, None


torch.manual_seed(17)
features, label, domain = nn.Sequential(nn.Linear(10, 16), nn.ReLU()), nn.Linear(16, 3), nn.Linear(16, 2)
optimizer = torch.optim.SGD([*features.parameters(), *label.parameters(), *domain.parameters()], lr=0.05)
for step in range(12):
    source, target = torch.randn(24, 10), torch.randn(24, 10) + 0.5
    y = source[:, :3].argmax(1)
    h = features(torch.cat([source, target]))
    lambd = 2 / (1 + 2.718 ** (-step)) - 1
    loss = F.cross_entropy(label(h[:24]), y)
    loss = loss + F.cross_entropy(domain(Reverse.apply(h, lambd)), torch.arange(2).repeat_interleave(24))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
