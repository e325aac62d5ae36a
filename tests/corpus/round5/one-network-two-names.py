# /// case
# title = "Policy and target are one module"
# category = "identity"
# kind = "target-is-online"
# kinds_also_ok = ["alias"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["policy_net", "target_net"]
# symptom = "the target moves with every step"
# symptom_check = "agent.policy_net is agent.target_net"
# cause = "the same model is given to both names"
# fix = "a copy"
# evidence = [
#     { url = "https://github.com/datawhalechina/easy-rl/issues/140", title = "DuelingDQN.ipynb中可能存在的两个BUG~" },
# ]
# ///
#+ import copy
import random
from collections import deque

import torch
import torch.nn as nn


class Config:
    gamma, lr, batch_size, memory_capacity, target_update = 0.95, 1e-3, 16, 200, 4
    n_states, n_actions, hidden_dim = 4, 2, 32


class ReplayBuffer(deque):
    def sample(self, n):
        s, a, r, s2, d = zip(*random.sample(self, n))
        return torch.stack(s), torch.tensor(a)[:, None], torch.tensor(r), torch.stack(s2), torch.tensor(d)


class DQN:
    def __init__(self, model, memory, cfg):
        self.cfg, self.memory = cfg, memory
        self.policy_net = model.to("cpu")
        self.target_net = model.to("cpu")  #- here
        for target_param, param in zip(self.target_net.parameters(), self.policy_net.parameters()):  #-
            target_param.data.copy_(param.data)  #-
#+         self.target_net = copy.deepcopy(model).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.policy_net.parameters(), lr=cfg.lr)

    def update(self):
        s, a, r, s2, done = self.memory.sample(self.cfg.batch_size)
        q = self.policy_net(s).gather(1, a).squeeze(1)
        with torch.no_grad():
            next_q = self.target_net(s2).max(1).values  #! also
        loss = nn.functional.mse_loss(q, r + self.cfg.gamma * next_q * (1 - done))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


random.seed(0)
torch.manual_seed(0)
cfg = Config()
model = nn.Sequential(nn.Linear(cfg.n_states, cfg.hidden_dim), nn.ReLU(), nn.Linear(cfg.hidden_dim, cfg.n_actions))
agent = DQN(model, ReplayBuffer(maxlen=cfg.memory_capacity), cfg)
state = torch.randn(4)
for t in range(60):
    action = random.randrange(2)
    new = (state + (0.1 if action else -0.1) * torch.tensor([1.0, 0, 0, 0]) + 0.05 * torch.randn(4)).clamp(-2, 2)
    agent.memory.append((state, action, float(-new[0].abs()), new, float(t % 15 == 14)))
    state = new
    if len(agent.memory) > cfg.batch_size:
        loss = agent.update()
    if t % cfg.target_update == 0:
        agent.target_net.load_state_dict(agent.policy_net.state_dict())
print(loss)
