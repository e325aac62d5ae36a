import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(102)


class Chain:
    def __init__(self, n=6):
        self.n, self.s = n, 0

    def step(self, action):
        self.s = min(self.n - 1, self.s + 1) if action == 1 else max(0, self.s - 1)
        done = self.s == self.n - 1
        return F.one_hot(torch.tensor(self.s), self.n).float(), float(done), done

    def reset(self):
        self.s = 0
        return F.one_hot(torch.tensor(0), self.n).float()


env, memory = Chain(), deque(maxlen=200)
online = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=5e-3)
state = env.reset()
for t in range(70):
    action = random.randrange(2)
    following, reward, done = env.step(action)
    memory.append((state, action, reward, following, float(done)))
    state = env.reset() if done else following
    if len(memory) < 50:
        continue
    s, a, r, s2, d = zip(*random.sample(list(memory), 16))
    q = online(torch.stack(s)).gather(1, torch.tensor(a).unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = online(torch.stack(s2)).argmax(1, keepdim=True)
        bootstrap = target(torch.stack(s2)).gather(1, best).squeeze(1)
        goal = torch.tensor(r) + 0.9 * (1 - torch.tensor(d)) * bootstrap
    loss = F.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(online.parameters(), 1.0)
    optimizer.step()
    if t % 10 == 0:
        target.load_state_dict(online.state_dict())
print(loss.item())
