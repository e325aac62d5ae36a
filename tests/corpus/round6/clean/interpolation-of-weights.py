import copy

import torch
import torch.nn as nn

torch.manual_seed(9)
slow = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
for outer in range(10):
    fast = copy.deepcopy(slow)
    opt = torch.optim.Adam(fast.parameters(), lr=1e-2)
    w = torch.randn(2, 1)
    for _ in range(5):
        x = torch.randn(30, 2)
        loss = (fast(x) - torch.sin(x @ w)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        for s, f in zip(slow.parameters(), fast.parameters()):
            s.lerp_(f, 0.3)
    print(outer, loss.item())
