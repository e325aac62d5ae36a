# /// case
# title = "Recurrent agent stores its state in the replay memory together with the graph"
# category = "retention-leak"
# kind = "graph-retained-list"
# kinds_also_ok = ["graph-carried-across-steps", "graph-retained"]
# severity = "warning"
# names = ["state", "push", "memory", "act"]
# difficulty = "hard"
# symptom = "memory grows until the buffer is full and stays high; no message"
# symptom_check = "any(t.state[0].requires_grad for t in memory.data)"
# cause = "acting runs with gradients on, and the LSTM state stored per transition holds the graph of the whole episode so far"
# fix = "act under no_grad (or detach the state before storing it)"
# evidence = [{ url = "https://github.com/Metta-AI/metta/pull/1139" }, { url = "https://github.com/Kaixhin/Rainbow/pull/33" }]
# ///
"""Recurrent Q-learning (stored-state replay) on a memory corridor."""
import random
from collections import deque
from typing import NamedTuple, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Transition(NamedTuple):
    obs: torch.Tensor
    state: Tuple[torch.Tensor, torch.Tensor]
    action: int
    reward: float
    next_obs: torch.Tensor
    done: bool


class ReplayMemory:
    def __init__(self, capacity):
        self.data = deque(maxlen=capacity)

    def push(self, *args):
        self.data.append(Transition(*args))  #! also

    def sample(self, n):
        batch = random.sample(self.data, n)
        obs = torch.stack([t.obs for t in batch])
        nxt = torch.stack([t.next_obs for t in batch])
        h = torch.cat([t.state[0] for t in batch]).detach()
        c = torch.cat([t.state[1] for t in batch]).detach()
        action = torch.tensor([t.action for t in batch])
        reward = torch.tensor([t.reward for t in batch])
        done = torch.tensor([float(t.done) for t in batch])
        return obs, (h, c), action, reward, nxt, done

    def __len__(self):
        return len(self.data)


class RecurrentQ(nn.Module):
    def __init__(self, obs=4, hidden=24, actions=2):
        super().__init__()
        self.cell = nn.LSTMCell(obs, hidden)
        self.q = nn.Linear(hidden, actions)
        self.hidden = hidden

    def initial(self, batch=1):
        return torch.zeros(batch, self.hidden), torch.zeros(batch, self.hidden)

    def forward(self, obs, state):
        state = self.cell(obs, state)
        return self.q(state[0]), state


class Corridor:
    """Shows a cue in the first observation; the reward at the end depends on it."""

    def __init__(self, length=6):
        self.length = length

    def reset(self):
        self.t, self.cue = 0, random.randint(0, 1)
        return self.observe()

    def observe(self):
        cue = float(self.cue) * 2 - 1 if self.t == 0 else 0.0
        return torch.tensor([cue, self.t / self.length, 1.0, float(self.t == self.length - 1)])

    def step(self, action):
        self.t += 1
        done = self.t >= self.length
        reward = float(action == self.cue) if done else 0.0
        return self.observe(), reward, done


torch.manual_seed(0)
random.seed(0)
env, memory = Corridor(), ReplayMemory(200)
online = RecurrentQ()
target = RecurrentQ()
target.load_state_dict(online.state_dict())
opt = torch.optim.Adam(online.parameters(), lr=3e-3)

for episode in range(20):
    obs, state, done = env.reset(), online.initial(), False
    while not done:
        q, next_state = online(obs.unsqueeze(0), state)  #- here
#+         with torch.no_grad():
#+             q, next_state = online(obs.unsqueeze(0), state)
        action = random.randint(0, 1) if random.random() < 0.2 else q.argmax().item()
        next_obs, reward, done = env.step(action)
        memory.push(obs, state, action, reward, next_obs, done)  #! here
        obs, state = next_obs, next_state  #! here
    if len(memory) < 32:
        continue
    o, s, a, r, o2, d = memory.sample(32)
    q, s2 = online(o, s)
    with torch.no_grad():
        goal = r + 0.95 * (1 - d) * target(o2, s2)[0].amax(dim=1)
    loss = F.smooth_l1_loss(q.gather(1, a[:, None]).squeeze(1), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if episode % 5 == 0:
        target.load_state_dict(online.state_dict())
print("loss", loss.item())
