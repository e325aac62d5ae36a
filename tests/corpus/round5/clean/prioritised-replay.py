import copy

import numpy as np
import torch
from torch import nn

torch.manual_seed(53)
rng = np.random.default_rng(53)
net = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
target = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
s, a, s2 = torch.randn(200, 4), torch.randint(0, 2, (200,)), torch.randn(200, 4)
r = s.gather(1, a[:, None]).squeeze(1)
priority = np.ones(200)
for step in range(20):
    p = priority ** 0.6
    p /= p.sum()
    idx = rng.choice(200, 32, p=p)
    weight = torch.from_numpy((200 * p[idx]) ** -0.4).float()
    i = torch.from_numpy(idx)
    with torch.no_grad():
        goal = r[i] + 0.9 * target(s2[i]).amax(1)
    error = net(s[i]).gather(1, a[i][:, None]).squeeze(1) - goal
    loss = (weight / weight.max() * error.square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    priority[idx] = error.detach().abs().numpy() + 1e-3
    if step % 5 == 4:
        target.load_state_dict(net.state_dict())
print(loss.item())
