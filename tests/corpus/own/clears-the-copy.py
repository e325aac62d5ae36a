# /// case
# category = "gradient"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["target"]
# ///
#-
import copy
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(online)
opt = torch.optim.RMSprop(online.parameters(), lr=1e-3)
buffer = [(torch.randn(4), random.randrange(2), random.random(), torch.randn(4)) for _ in range(64)]


def learn():
    s, a, r, s2 = zip(*random.sample(buffer, 16))
    s, s2 = torch.stack(s), torch.stack(s2)
    a, r = torch.tensor(a), torch.tensor(r)
    with torch.no_grad():
        goal = r + 0.95 * target(s2).max(1).values
    chosen = online(s).gather(1, a[:, None]).squeeze(1)
    loss = nn.functional.huber_loss(chosen, goal)
    target.zero_grad()  #- here
#+     online.zero_grad()
    loss.backward()  #! also
    opt.step()
    return loss.item()


for i in range(8):
    print(learn())
    if i % 4 == 3:
        target.load_state_dict(online.state_dict())
