import torch
from torch import nn

torch.manual_seed(2)
encoder = nn.Sequential(nn.Linear(6, 12), nn.Tanh())
head_a, head_b = nn.Linear(12, 3), nn.Linear(12, 1)
params = [p for m in (encoder, head_a, head_b) for p in m.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)


def gradient_norm(loss, weight):
    (g,) = torch.autograd.grad(loss, weight)
    return g.norm().item()


history = []
for step in range(4):
    x = torch.randn(32, 6)
    h = encoder(x)
    cls = nn.functional.cross_entropy(head_a(h), torch.randint(0, 3, (32,)))
    reg = head_b(h).pow(2).mean()
    history.append(gradient_norm(cls, encoder[0].weight))
    opt.zero_grad()
    (cls + reg).backward()
    opt.step()
print(history)
