import copy
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward next_state done")


class Corridor:
    """Walk right to the goal; 1-hot position."""

    def __init__(self, length=6):
        self.length = length

    def reset(self):
        self.pos, self.t = 0, 0
        return self.obs()

    def obs(self):
        return F.one_hot(torch.tensor(self.pos), self.length).float()

    def step(self, action):
        self.t += 1
        self.pos = max(0, min(self.length - 1, self.pos + (1 if action == 1 else -1)))
        goal = self.pos == self.length - 1
        return self.obs(), (1.0 if goal else -0.02), goal or self.t >= 30, goal


class Agent:
    def __init__(self, n_obs, n_actions, gamma=0.95, sync_every=50):
        self.q = nn.Sequential(nn.Linear(n_obs, 32), nn.ReLU(), nn.Linear(32, n_actions))
        self.q_target = copy.deepcopy(self.q)
        self.q_target.requires_grad_(False)
        self.gamma, self.sync_every, self.n_actions = gamma, sync_every, n_actions
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=3e-3)
        self.memory = deque(maxlen=2000)
        self.updates = 0

    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(self.n_actions)
        with torch.no_grad():
            return self.q(state).argmax().item()

    def learn(self, batch_size=32):
        if len(self.memory) < batch_size:
            return None
        batch = Transition(*zip(*random.sample(self.memory, batch_size)))
        state, next_state = torch.stack(batch.state), torch.stack(batch.next_state)
        action = torch.tensor(batch.action)
        reward, done = torch.tensor(batch.reward), torch.tensor(batch.done, dtype=torch.float32)
        value = self.q(state).gather(1, action[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.q(next_state).argmax(1, keepdim=True)
            target = reward + self.gamma * (1 - done) * self.q_target(next_state).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(value, target)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.q.parameters(), 10.0)
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.sync_every == 0:
            self.q_target.load_state_dict(self.q.state_dict())
        return loss.item()


random.seed(5)
torch.manual_seed(5)
torch.set_num_threads(1)
env, agent = Corridor(), Agent(6, 2)
lengths = []
for episode in range(35):
    state, finished = env.reset(), False
    while not finished:
        action = agent.act(state, eps=max(0.05, 1 - episode / 20))
        next_state, reward, finished, goal = env.step(action)
        agent.memory.append(Transition(state, action, reward, next_state, goal))
        loss = agent.learn()
        state = next_state
    lengths.append(env.t)
print("steps per episode", sum(lengths[:5]) / 5, "->", sum(lengths[-5:]) / 5)
