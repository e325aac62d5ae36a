import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
C, sigma, batch = 1.0, 0.5, 16


def sample_loss(params, x, y):
    return F.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))


sample_grad = vmap(grad(sample_loss), in_dims=(None, 0, 0))
X = torch.randn(64, 8)
Y = X[:, :3].argmax(1)
for epoch in range(2):
    for idx in torch.randperm(64).split(batch):
        params = {k: v.detach() for k, v in model.named_parameters()}
        grads = sample_grad(params, X[idx], Y[idx])
        norm = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()], 1).norm(dim=1)
        scale = (C / (norm + 1e-6)).clamp(max=1.0)
        for name, p in model.named_parameters():
            clipped = torch.einsum("n,n...->...", scale, grads[name])
            p.grad = (clipped + sigma * C * torch.randn_like(p)) / batch
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        print(epoch, F.cross_entropy(model(X), Y).item(), norm.max().item())
