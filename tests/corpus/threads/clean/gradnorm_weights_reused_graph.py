import torch
from torch import nn

torch.manual_seed(26)
shared, heads = nn.Linear(6, 8), nn.ModuleList([nn.Linear(8, 1), nn.Linear(8, 1)])
w = nn.Parameter(torch.ones(2))
opt = torch.optim.Adam([*shared.parameters(), *heads.parameters()], lr=1e-3)
w_opt = torch.optim.Adam([w], lr=1e-2)
for _ in range(6):
    x = torch.randn(16, 6)
    h = shared(x).relu()
    losses = torch.stack([(heads[0](h)[:, 0] - x[:, 0]).pow(2).mean(), (heads[1](h)[:, 0] - x.sum(1)).pow(2).mean()])
    norms = torch.stack(
        [torch.autograd.grad(w[i] * losses[i], shared.weight, retain_graph=True, create_graph=True)[0].norm() for i in range(2)]
    )
    balance = (norms - norms.mean().detach()).abs().sum()
    w_opt.zero_grad()
    (w.grad,) = torch.autograd.grad(balance, w, retain_graph=True)
    opt.zero_grad()
    (w.detach() * losses).sum().backward()
    opt.step()
    w_opt.step()
