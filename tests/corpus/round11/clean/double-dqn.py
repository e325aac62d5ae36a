import random
from collections import deque, namedtuple

import torch
from torch import nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward following alive")


class Corridor:
    """Walk to the right end of a corridor; the left end is a trap."""

    def __init__(self, cells):
        self.cells = cells

    def reset(self):
        self.at = self.cells // 2
        return self.encode()

    def encode(self):
        return F.one_hot(torch.tensor(self.at), self.cells).float()

    def step(self, action):
        self.at += 1 if action == 1 else -1
        if random.random() < 0.1:
            self.at -= 1
        self.at = min(max(self.at, 0), self.cells - 1)
        done = self.at in (0, self.cells - 1)
        return self.encode(), (1.0 if self.at == self.cells - 1 else -0.05), done


class Dueling(nn.Module):
    def __init__(self, inputs, actions, hidden=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
        self.value, self.gain = nn.Linear(hidden, 1), nn.Linear(hidden, actions)

    def forward(self, state):
        h = self.body(state)
        gain = self.gain(h)
        return self.value(h) + gain - gain.mean(-1, keepdim=True)


class Agent:
    def __init__(self, inputs, actions, gamma=0.95, period=50):
        self.online, self.target = Dueling(inputs, actions), Dueling(inputs, actions)
        for p in self.target.parameters():
            p.requires_grad = False
        self.synchronise()
        self.optimizer = torch.optim.RMSprop(self.online.parameters(), lr=1e-3)
        self.actions, self.gamma, self.period, self.updates = actions, gamma, period, 0

    def synchronise(self):
        self.target.load_state_dict(self.online.state_dict())

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(self.actions)
        with torch.no_grad():
            return self.online(state).argmax().item()

    def learn(self, batch):
        state, following = torch.stack(batch.state), torch.stack(batch.following)
        action = torch.tensor(batch.action)[:, None]
        reward, alive = torch.tensor(batch.reward), torch.tensor(batch.alive)
        chosen = self.online(state).gather(1, action).squeeze(1)
        with torch.no_grad():
            best = self.online(following).argmax(1, keepdim=True)
            goal = reward + self.gamma * alive * self.target(following).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(chosen, goal)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.online.parameters(), 1.0)
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.period == 0:
            self.synchronise()
        return loss.item()


torch.manual_seed(71)
random.seed(71)
env, agent, memory, totals = Corridor(9), Agent(9, 2), deque(maxlen=2000), []
for episode in range(60):
    state, total = env.reset(), 0.0
    for _ in range(30):
        action = agent.act(state, epsilon=max(0.1, 1 - episode / 30))
        following, reward, done = env.step(action)
        memory.append(Transition(state, action, reward, following, 0.0 if done else 1.0))
        state, total = following, total + reward
        if len(memory) >= 64:
            loss = agent.learn(Transition(*zip(*random.sample(memory, 32))))
        if done:
            break
    totals.append(total)
print(f"return {sum(totals[:10]) / 10:.2f} -> {sum(totals[-10:]) / 10:.2f}, last loss {loss:.4f}")
