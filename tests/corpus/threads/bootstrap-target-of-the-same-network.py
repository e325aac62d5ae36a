# /// case
# title = "One-network DQN whose target is tracked"
# category = "other-loss"
# kind = "missing-detach"
# kinds_also_ok = ["bootstrap-target-tracked"]
# severity = "warning"
# names = ["target", "next_q"]
# symptom = "the gradient differs from the semi-gradient"
# symptom_check = "target.requires_grad"
# cause = "the bootstrapped value is part of the graph"
# fix = "no_grad around the target"
# evidence = [
#     { url = "https://github.com/philtabor/Deep-Q-Learning-Paper-To-Code/issues/16", title = "No gradient required for q_target calculation" },
#     { url = "https://github.com/datawhalechina/easy-rl/pull/117", title = "distinguish Qnet and set detach() on TD target" },
# ]
# ///
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
    next_q = q(torch.stack(s2)).max(1).values  #- here
#+     with torch.no_grad():
#+         next_q = q(torch.stack(s2)).max(1).values
    target = torch.tensor(r) + 0.99 * next_q * (1 - torch.tensor(d))  #! here
    loss = nn.functional.smooth_l1_loss(chosen, target)  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
