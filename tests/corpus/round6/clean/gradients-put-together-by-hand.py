import torch
import torch.nn as nn

torch.manual_seed(30)
shared = nn.Linear(5, 20)
heads = nn.ModuleList([nn.Linear(20, 1), nn.Linear(20, 1)])
params = list(shared.parameters())
opt = torch.optim.SGD([*params, *heads.parameters()], lr=0.05)


def flat(grads):
    return torch.cat([g.flatten() for g in grads])


for it in range(12):
    x = torch.randn(40, 5)
    h = shared(x).tanh()
    losses = [(heads[0](h) - x[:, :1]).pow(2).mean(), (heads[1](h) + x[:, :1].abs()).pow(2).mean()]
    g = [flat(torch.autograd.grad(l, params, retain_graph=True)) for l in losses]
    opt.zero_grad()
    sum(losses).backward()
    a, b = g
    dot = a @ b
    if dot < 0:
        a, b = a - dot / g[1].pow(2).sum() * g[1], b - dot / g[0].pow(2).sum() * g[0]
    merged, at = a + b, 0
    for p in params:
        p.grad = merged[at:at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
print([l.item() for l in losses])
