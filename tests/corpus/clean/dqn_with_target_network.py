import copy
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
online = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.RMSprop(online.parameters(), lr=1e-3)
replay = [(torch.randn(4), random.randrange(2), random.random(), torch.randn(4)) for _ in range(40)]
for step in range(8):
    batch = random.sample(replay, 8)
    s, a, r, s2 = (torch.stack([torch.as_tensor(x) for x in column]) for column in zip(*batch))
    q = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        goal = r.float() + 0.99 * target(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    for p in online.parameters():
        p.grad.clamp_(-1, 1)
    optimizer.step()
    if step % 4 == 3:
        target.load_state_dict(online.state_dict())
print(loss.item())
