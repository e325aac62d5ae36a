import random
from collections import deque

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
memory = deque(maxlen=200)
state = torch.randn(4)
for frame in range(60):
    action = random.randrange(2)
    nxt, reward, done = torch.randn(4), random.random(), float(frame % 10 == 9)
    memory.append((state, action, reward, nxt, done))
    state = nxt
    if len(memory) < 32:
        continue
    s, a, r, s2, d = zip(*random.sample(memory, 16))
    chosen = q(torch.stack(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
    next_q = q(torch.stack(s2)).max(1).values
    target = torch.tensor(r) + 0.99 * next_q * (1 - torch.tensor(d))
    loss = nn.functional.smooth_l1_loss(chosen, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
