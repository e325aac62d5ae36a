import torch
from torch import nn

torch.manual_seed(52)
model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
params = list(model.parameters())
x = torch.randn(60, 3)
y = torch.tanh(x @ torch.randn(3, 1))


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


for it in range(4):
    loss = (model(x) - y).square().mean()
    g = flat(torch.autograd.grad(loss, params, create_graph=True))

    def hvp(v):
        return flat(torch.autograd.grad(g @ v, params, retain_graph=True)) + 0.1 * v

    b = -g.detach()
    step, r = torch.zeros_like(b), b.clone()
    p, rr = r.clone(), r @ r
    for _ in range(8):
        hp = hvp(p)
        curvature = p @ hp
        if curvature <= 0:
            break
        a = rr / curvature
        step, r = step + a * p, r - a * hp
        new = r @ r
        p, rr = r + new / rr * p, new
    with torch.no_grad():
        at = 0
        for q in params:
            q += step[at:at + q.numel()].view_as(q)
            at += q.numel()
    print(it, loss.item())
