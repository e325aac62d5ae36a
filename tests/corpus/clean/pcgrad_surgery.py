import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
params = list(net.parameters())
opt = torch.optim.SGD(params, lr=0.05)


def flat(loss, keep):
    grads = torch.autograd.grad(loss, params, retain_graph=keep)
    return torch.cat([g.reshape(-1) for g in grads])


for step in range(8):
    x = torch.randn(32, 4)
    out = net(x)
    gs = [flat((out[:, 0] - x.sum(1)).pow(2).mean(), True), flat((out[:, 1] + x.sum(1)).pow(2).mean(), False)]
    merged = []
    for i, g in enumerate(gs):
        other = gs[1 - i]
        dot = g @ other
        merged.append(g - dot / other.pow(2).sum() * other if dot < 0 else g)
    total = sum(merged)
    at = 0
    for p in params:
        p.grad = total[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
print(out.mean().item())
