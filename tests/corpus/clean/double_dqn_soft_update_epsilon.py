import copy
import random
from collections import deque

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)


class QNet(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.layer1 = nn.Linear(n_obs, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_act)

    def forward(self, x):
        x = torch.relu(self.layer1(x))
        x = torch.relu(self.layer2(x))
        return self.layer3(x)


policy_net = QNet(3, 2)
target_net = copy.deepcopy(policy_net).eval()
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory = deque(maxlen=200)
TAU, GAMMA, eps = 0.01, 0.97, 1.0
state = torch.randn(3)
for t in range(60):
    if random.random() < eps:
        action = random.randrange(2)
    else:
        with torch.no_grad():
            action = policy_net(state.unsqueeze(0)).argmax(1).item()
    eps = max(0.05, eps * 0.97)
    reward = 1.0 if (state[1] > 0) == bool(action) else -1.0
    nxt = None if random.random() < 0.05 else torch.randn(3)
    memory.append((state, action, reward, nxt))
    state = nxt if nxt is not None else torch.randn(3)
    if len(memory) < 32:
        continue
    s, a, r, n = zip(*random.sample(memory, 16))
    s, a, r = torch.stack(s), torch.tensor(a), torch.tensor(r)
    non_final = torch.tensor([x is not None for x in n])
    q = policy_net(s).gather(1, a.unsqueeze(1))
    next_value = torch.zeros(16)
    with torch.no_grad():
        ns = torch.stack([x for x in n if x is not None])
        best = policy_net(ns).argmax(1, keepdim=True)
        next_value[non_final] = target_net(ns).gather(1, best).squeeze(1)
    target = r + GAMMA * next_value
    loss = nn.SmoothL1Loss()(q, target.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    new, old = policy_net.state_dict(), target_net.state_dict()
    for key in new:
        old[key] = new[key] * TAU + old[key] * (1 - TAU)
    target_net.load_state_dict(old)
print(len(memory), loss.item())
