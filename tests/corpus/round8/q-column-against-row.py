# /// case
# title = "Q-values of shape (N, 1) are compared with targets of shape (N,)"
# category = "loss"
# kind = "broadcast-in-loss"
# kinds_also_ok = ["shape-mismatch-in-loss", "target-shape-broadcast"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["predicted", "target", "gather", "squeeze"]
# symptom = "the loss is over all N*N pairs"
# symptom_check = "(predicted - target).dim() == 2"
# cause = "gather leaves a column and the target is a row, so that smooth_l1_loss broadcasts the two to a matrix."
# fix = "squeeze(1)"
# ///
import random
from collections import deque, namedtuple

import torch
from torch import nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward following alive")


def walk(position, action):
    position = max(-5, min(5, position + (1 if action else -1)))
    return position, float(position == 4), abs(position) < 5


def encode(positions):
    grid = torch.zeros(len(positions), 11)
    grid[torch.arange(len(positions)), torch.tensor(positions) + 5] = 1.0
    return grid


random.seed(0)
torch.manual_seed(0)
online = nn.Sequential(nn.Linear(11, 24), nn.ReLU(), nn.Linear(24, 2))
frozen = nn.Sequential(nn.Linear(11, 24), nn.ReLU(), nn.Linear(24, 2))
frozen.load_state_dict(online.state_dict())
optimizer = torch.optim.RMSprop(online.parameters(), lr=2e-3)
memory: deque[Transition] = deque(maxlen=300)
position, epsilon = 0, 0.9

for t in range(120):
    if random.random() < epsilon:
        action = random.randrange(2)
    else:
        with torch.no_grad():
            action = int(online(encode([position])).argmax())
    following, reward, alive = walk(position, action)
    memory.append(Transition(position, action, reward, following, alive))
    position = following if alive else 0
    if t % 5 or len(memory) < 32:
        continue
    epsilon *= 0.95
    batch = Transition(*zip(*random.sample(memory, 32)))
    chosen = torch.tensor(batch.action).unsqueeze(1)
    predicted = online(encode(batch.state)).gather(1, chosen)  #- here
#+     predicted = online(encode(batch.state)).gather(1, chosen).squeeze(1)
    with torch.no_grad():
        best = frozen(encode(batch.following)).max(1).values
        target = torch.tensor(batch.reward) + 0.95 * best * torch.tensor(batch.alive).float()  #! here
    loss = F.smooth_l1_loss(predicted, target)  #! here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if t % 20 == 0:
        frozen.load_state_dict(online.state_dict())
        print(t, loss.item())
