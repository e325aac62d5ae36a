import torch
from torch import nn

torch.manual_seed(0)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


features, label, domain = nn.Linear(5, 10), nn.Linear(10, 2), nn.Linear(10, 2)
params = [p for m in (features, label, domain) for p in m.parameters()]
opt = torch.optim.SGD(params, lr=0.05)
for x in torch.randn(5, 16, 5):
    h = torch.relu(features(x))
    loss = nn.functional.cross_entropy(label(h), (x[:, 0] > 0).long())
    loss = loss + nn.functional.cross_entropy(domain(Reverse.apply(h, 0.3)), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
