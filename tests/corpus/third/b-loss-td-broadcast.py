# /// case
# title = "TD error of shape [N, N] by broadcasting"
# category = "loss-wiring"
# kind = "loss-shape-broadcast"
# severity = "warning"
# severity_by_writer = "error"
# names = ["q", "target", "td_error"]
# difficulty = "medium"
# symptom = "Loss converges to the variance of the targets; all Q values move to the mean; silent because the square is written out."
# symptom_check = "agent.last_td.ndim == 2"
# cause = "q has shape [N, 1] (gather keeps the dimension), target has shape [N]; the difference is [N, N]."
# fix = "squeeze(1) the gathered values."
# evidence = [{ url = "https://github.com/thu-ml/tianshou/issues/43" }, { url = "https://github.com/sunwuzhou03/reinforcement-learning-lab/issues/1" }, { url = "https://github.com/yuji-roh/fairbatch/pull/2" }]
# ///
"""DQN on a tiny corridor."""
import random
from collections import deque, namedtuple

import torch
from torch import nn

Transition = namedtuple("Transition", "s a r s2 done")


class Corridor:
    size = 6

    def reset(self):
        self.pos = random.randrange(self.size - 1)
        return self.obs()

    def obs(self):
        return torch.eye(self.size)[self.pos]

    def step(self, action):
        self.pos = max(0, self.pos + (1 if action else -1))
        done = self.pos == self.size - 1
        return self.obs(), 1.0 if done else -0.05, done


class QNet(nn.Module):
    def __init__(self, size, actions=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, 24), nn.ReLU(), nn.Linear(24, actions))

    def forward(self, s):
        return self.net(s)


class DQN:
    def __init__(self, env, gamma=0.9, lr=1e-2):
        self.env, self.gamma = env, gamma
        self.online, self.target = QNet(env.size), QNet(env.size)
        self.target.load_state_dict(self.online.state_dict())
        self.opt = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.memory = deque(maxlen=1000)

    def learn(self, batch_size=32):
        batch = Transition(*zip(*random.sample(self.memory, batch_size)))
        s, s2 = torch.stack(batch.s), torch.stack(batch.s2)
        a, r = torch.tensor(batch.a), torch.tensor(batch.r)
        alive = 1.0 - torch.tensor(batch.done, dtype=torch.float32)
        q = self.online(s).gather(1, a[:, None])  #- here
#+         q = self.online(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            target = r + self.gamma * alive * self.target(s2).max(1).values  #! here
        td_error = q - target  #! here
        loss = td_error.pow(2).mean()  #! here
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return td_error

    def run(self, episodes):
        for ep in range(episodes):
            s, done, t = self.env.reset(), False, 0
            while not done and t < 20:
                a = random.randrange(2)
                s2, r, done = self.env.step(a)
                self.memory.append(Transition(s, a, r, s2, done))
                s, t = s2, t + 1
                if len(self.memory) >= 64 and len(self.memory) % 2:
                    self.last_td = self.learn()
            if ep % 5 == 0:
                self.target.load_state_dict(self.online.state_dict())


random.seed(0)
torch.manual_seed(0)
agent = DQN(Corridor())
agent.run(14)
print(agent.online(torch.eye(6)).detach())
