# /// case
# title = "The periodic reset puts a new head into the network that the optimizer does not hold"
# category = "optimizer"
# kind = "optimizer-holds-old-parameters"
# kinds_also_ok = ["parameters-replaced-after-optimizer", "stale-optimizer-reference", "new-layer-not-in-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["head", "optimizer", "online"]
# symptom = "after the reset the head stays at its random values and only the body adapts to it"
# symptom_check = "not any(p is agent.online.head.weight for g in agent.optimizer.param_groups for p in g['params'])"
# cause = "The optimizer keeps the parameters of the head that was replaced."
# fix = "reset the head's values in place: self.online.head.reset_parameters()"
# ///
import copy
import random

import torch
from torch import nn


class Corridor:
    def __init__(self, length=8):
        self.length = length

    def reset(self):
        self.cell = random.randrange(self.length - 1)
        return self.cell

    def step(self, action):
        self.cell = max(0, self.cell + (1 if action else -1))
        goal = self.cell == self.length - 1
        return self.cell, float(goal), goal


class QNet(nn.Module):
    def __init__(self, states, width, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Embedding(states, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, actions)

    def forward(self, s):
        return self.head(self.body(s))


class Agent:
    def __init__(self, states, width=32, actions=2, gamma=0.9):
        self.width, self.actions, self.gamma = width, actions, gamma
        self.online = QNet(states, width, actions)
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.SGD(self.online.parameters(), lr=0.1)  #! also
        self.memory, self.losses = [], []

    def reset_head(self):
        self.online.head = nn.Linear(self.width, self.actions)  #- here
#+         self.online.head.reset_parameters()
        self.sync()

    def sync(self):
        self.target.load_state_dict(self.online.state_dict())

    def act(self, s, epsilon):
        if random.random() < epsilon:
            return random.randrange(self.actions)
        with torch.no_grad():
            return int(self.online(torch.tensor(s)).argmax())

    def learn(self, batch=32):
        s, a, r, s2, d = map(torch.tensor, zip(*random.sample(self.memory, batch)))
        with torch.no_grad():
            y = r + self.gamma * (1 - d) * self.target(s2).max(1).values
        q = self.online(s).gather(1, a[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()  #! also
        self.losses.append(loss.item())


random.seed(1)
torch.manual_seed(1)
env = Corridor()
agent = Agent(env.length)
state = env.reset()
for t in range(1, 901):
    action = agent.act(state, epsilon=0.3)
    following, reward, done = env.step(action)
    agent.memory.append((state, action, reward, following, float(done)))
    state = env.reset() if done else following
    if len(agent.memory) >= 32:
        agent.learn()
    if t % 40 == 0:
        agent.sync()
    if t == 300:
        agent.reset_head()
print("loss", agent.losses[0], agent.losses[-1])
print(agent.online(torch.arange(env.length)).detach())
