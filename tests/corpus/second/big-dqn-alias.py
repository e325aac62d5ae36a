# /// case
# title = "DQN: the target network is the same object as the online network"
# category = "rl-ssl-stopgrad"
# kind = "target-network-alias"
# severity = "warning"
# names = ["self.target"]
# difficulty = "hard"
# symptom = "silent: target and online are one module; the periodic sync does nothing"
# symptom_check = "agent.target is agent.online"
# cause = "plain assignment instead of a copy"
# fix = "copy.deepcopy(online).requires_grad_(False)"
# evidence = [
#     { url = "https://github.com/datawhalechina/easy-rl/pull/117" },
#     { url = "https://github.com/starry-sky6688/MADDPG/issues/25" },
# ]
# ///
"""DQN on a small deterministic chain environment."""
import copy
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


class Chain:
    def __init__(self, length=6):
        self.length, self.pos = length, 0

    def reset(self):
        self.pos = 0
        return self.observe()

    def observe(self):
        return F.one_hot(torch.tensor(self.pos), self.length).float()

    def step(self, action):
        self.pos = min(self.pos + 1, self.length - 1) if action == 1 else max(self.pos - 1, 0)
        done = self.pos == self.length - 1
        return self.observe(), (1.0 if done else -0.01), done


class Replay:
    def __init__(self, size):
        self.items = deque(maxlen=size)

    def push(self, *item):
        self.items.append(item)

    def draw(self, n):
        s, a, r, s2, d = zip(*random.sample(list(self.items), n))
        return (torch.stack(s), torch.tensor(a), torch.tensor(r), torch.stack(s2), torch.tensor(d, dtype=torch.float32))


class Agent:
    def __init__(self, n_obs, n_act, gamma=0.97):
        self.online = nn.Sequential(nn.Linear(n_obs, 32), nn.ReLU(), nn.Linear(32, n_act))
        self.target = self.online  #- here
#+         self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=2e-3)
        self.gamma, self.n_act = gamma, n_act

    @torch.no_grad()
    def act(self, obs, eps):
        if random.random() < eps:
            return random.randrange(self.n_act)
        return self.online(obs).argmax().item()

    def learn(self, batch):
        s, a, r, s2, d = batch
        q = self.online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.target(s2).max(dim=1).values
            goal = r + self.gamma * (1 - d) * best
        loss = F.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def sync(self):
        self.target.load_state_dict(self.online.state_dict())  #! also


random.seed(0)
torch.manual_seed(0)
env, agent, memory = Chain(), Agent(6, 2), Replay(500)
losses, steps = [], 0
for episode in range(6):
    obs, done, t = env.reset(), False, 0
    while not done and t < 20:
        action = agent.act(obs, eps=0.3)
        nxt, reward, done = env.step(action)
        memory.push(obs, action, reward, nxt, done)
        obs, t, steps = nxt, t + 1, steps + 1
        if len(memory.items) >= 16:
            losses.append(agent.learn(memory.draw(16)))
        if steps % 10 == 0:
            agent.sync()
print(len(losses), losses[-1])
