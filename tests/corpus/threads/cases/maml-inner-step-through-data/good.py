import copy

import torch
import torch.nn as nn
from torch.func import functional_call

torch.manual_seed(14)
meta = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
outer = torch.optim.Adam(meta.parameters(), lr=1e-3)
mse = nn.MSELoss()


def sample_task():
    amp, phase = torch.rand(1) * 4 + 1, torch.rand(1) * 3
    x = torch.rand(20, 1) * 10 - 5
    return x[:10], amp * torch.sin(x[:10] + phase), x[10:], amp * torch.sin(x[10:] + phase)


for it in range(4):
    outer.zero_grad()
    meta_loss = 0.0
    for _ in range(3):
        xs, ys, xq, yq = sample_task()
        fast = dict(meta.named_parameters())
        grads = torch.autograd.grad(mse(meta(xs), ys), list(fast.values()), create_graph=True)
        fast = {k: p - 0.01 * g for (k, p), g in zip(fast.items(), grads)}
        meta_loss = meta_loss + mse(functional_call(meta, fast, (xq,)), yq)
    meta_loss.backward()
    outer.step()
print(meta_loss.item())
