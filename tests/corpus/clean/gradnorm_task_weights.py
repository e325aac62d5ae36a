import torch
from torch import nn

torch.manual_seed(5)
shared = nn.Linear(5, 16)
heads = [nn.Linear(16, 1) for _ in range(2)]
weights = nn.Parameter(torch.ones(2))
opt = torch.optim.Adam([p for m in (shared, *heads) for p in m.parameters()], lr=1e-2)
weight_opt = torch.optim.Adam([weights], lr=1e-2)
first = None
for step in range(6):
    x = torch.randn(32, 5)
    h = torch.relu(shared(x))
    losses = torch.stack([
        (heads[0](h) - x[:, :1]).pow(2).mean(),
        (heads[1](h) - 10 * x[:, 1:2]).pow(2).mean(),
    ])
    first = losses.detach() if first is None else first
    opt.zero_grad()
    (weights.detach() * losses).sum().backward(retain_graph=True)
    norms = torch.stack([
        torch.autograd.grad(w * l, shared.weight, retain_graph=True, create_graph=True)[0].norm()
        for w, l in zip(weights, losses)
    ])
    ratio = losses.detach() / first
    target = (norms.mean() * (ratio / ratio.mean()).sqrt()).detach()
    weight_opt.zero_grad()
    (weights.grad,) = torch.autograd.grad((norms - target).abs().sum(), [weights])
    opt.step()
    weight_opt.step()
    with torch.no_grad():
        weights.mul_(2 / weights.sum())
print(weights.tolist())
