import torch
import torch.nn as nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


torch.manual_seed(5)
features, label, domain = nn.Linear(8, 16), nn.Linear(16, 3), nn.Linear(16, 2)
opt = torch.optim.SGD([p for m in (features, label, domain) for p in m.parameters()], lr=0.05, momentum=0.9)
for step in range(10):
    source, target = torch.randn(32, 8), torch.randn(32, 8) + 0.5
    y = source[:, :3].argmax(1)
    h = features(torch.cat([source, target])).relu()
    d = torch.cat([torch.zeros(32), torch.ones(32)]).long()
    strength = 2 / (1 + 2.718 ** (-step)) - 1
    loss = nn.functional.cross_entropy(label(h[:32]), y) + nn.functional.cross_entropy(domain(Reverse.apply(h, strength)), d)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
