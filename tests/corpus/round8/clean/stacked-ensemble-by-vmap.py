import copy

import torch
import torch.nn as nn
from torch.func import functional_call, stack_module_state, vmap


def member():
    return nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))


torch.manual_seed(32)
members = [member() for _ in range(5)]
params, buffers = stack_module_state(members)
skeleton = copy.deepcopy(members[0]).to("meta")


def call(p, b, x):
    return functional_call(skeleton, (p, b), (x,))


predict = vmap(call, in_dims=(0, 0, None))
optimizer = torch.optim.Adam(params.values(), lr=1e-2)
x = torch.cat([torch.rand(20, 1) - 2, torch.rand(20, 1) + 1])
y = torch.sin(2 * x) + 0.05 * torch.randn_like(x)
for step in range(25):
    keep = (torch.rand(5, 40, 1) < 0.8).float()
    error = (predict(params, buffers, x) - y).square()
    loss = (keep * error).sum() / keep.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 8 == 0:
        print(step, loss.item())
with torch.no_grad():
    grid = torch.linspace(-3, 3, 13)[:, None]
    print(predict(params, buffers, grid).std(0).squeeze(1).tolist())
