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
        learner = copy.deepcopy(meta)
        grads = torch.autograd.grad(mse(learner(xs), ys), learner.parameters(), create_graph=True)
        for p, g in zip(learner.parameters(), grads):
            p.data -= 0.01 * g
        meta_loss = meta_loss + mse(learner(xq), yq)
    meta_loss.backward()
    outer.step()
print(meta_loss.item())
