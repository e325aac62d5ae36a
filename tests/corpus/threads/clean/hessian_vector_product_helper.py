import torch
from torch import nn

torch.manual_seed(36)
model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
params = list(model.parameters())


def flat(ts):
    return torch.cat([t.reshape(-1) for t in ts])


def hvp(loss, v):
    g = flat(torch.autograd.grad(loss, params, create_graph=True))
    return flat(torch.autograd.grad(g @ v, params)).detach()


x, y = torch.randn(20, 3), torch.randn(20, 1)
v = torch.randn(sum(p.numel() for p in params))
for _ in range(5):
    v = hvp((model(x) - y).pow(2).mean(), v / v.norm())
print(v.norm().item())
