import copy

import torch
from torch import nn

torch.manual_seed(19)
net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 5))
average = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randn(16, 5)
    opt.zero_grad()
    (net(x + 0.1 * torch.randn_like(x)) - x).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), net.parameters()):
            slow.lerp_(fast, 0.05)
print((average(x) - net(x)).abs().max().item())
