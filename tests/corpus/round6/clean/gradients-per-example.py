import torch
import torch.nn as nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(39)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.2)


def loss_of(params, x, y):
    return nn.functional.cross_entropy(functional_call(model, params, (x[None],)), y[None])


per_example = vmap(grad(loss_of), in_dims=(None, 0, 0))
x = torch.randn(60, 5)
y = x[:, :3].argmax(1)
bound, noise = 1.0, 0.1
for epoch in range(6):
    for xb, yb in zip(x.split(20), y.split(20)):
        params = {k: p.detach() for k, p in model.named_parameters()}
        g = per_example(params, xb, yb)
        norm = torch.stack([v.flatten(1).norm(dim=1) for v in g.values()]).norm(dim=0)
        shrink = (bound / norm).clamp(max=1)
        for name, p in model.named_parameters():
            total = torch.einsum("n,n...->...", shrink, g[name])
            p.grad = (total + noise * bound * torch.randn_like(p)) / len(xb)
        opt.step()
with torch.no_grad():
    print((model(x).argmax(1) == y).float().mean().item())
