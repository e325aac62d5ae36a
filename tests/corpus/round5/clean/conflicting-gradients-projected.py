import torch
from torch import nn

torch.manual_seed(43)
shared, heads = nn.Linear(10, 16), nn.ModuleList(nn.Linear(16, 1) for _ in range(2))
optimizer = torch.optim.Adam([*shared.parameters(), *heads.parameters()], lr=3e-3)
weights = torch.randn(10, 2)
for step in range(12):
    x = torch.randn(48, 10)
    y = torch.tanh(x @ weights)
    h = torch.relu(shared(x))
    losses = [(heads[i](h).squeeze(1) - y[:, i]).square().mean() for i in range(2)]
    flat = []
    for i, loss in enumerate(losses):
        grads = torch.autograd.grad(loss, list(shared.parameters()), retain_graph=True)
        flat.append(torch.cat([g.flatten() for g in grads]))
    dot = flat[0] @ flat[1]
    if dot < 0:
        g0, g1 = flat
        flat = [g0 - dot / g1.square().sum() * g1, g1 - dot / g0.square().sum() * g0]
    merged, at = flat[0] + flat[1], 0
    optimizer.zero_grad()
    head_grads = torch.autograd.grad(sum(losses), list(heads.parameters()))
    for p, g in zip(heads.parameters(), head_grads):
        p.grad = g
    for p in shared.parameters():
        p.grad = merged[at:at + p.numel()].view_as(p).clone()
        at += p.numel()
    optimizer.step()
print([loss.item() for loss in losses])
