# /// case
# title = "Online and target network are one object"
# category = "identity"
# kind = "target-is-online"
# kinds_also_ok = ["shared-parameters", "missing-deepcopy"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["target_net", "policy_net"]
# symptom = "the target moves with each step"
# symptom_check = "agent.target_net is agent.policy_net"
# cause = "to() returns the module itself"
# fix = "copy.deepcopy"
# evidence = [
#     { url = "https://github.com/datawhalechina/easy-rl/issues/140", title = "DuelingDQN.ipynb中可能存在的两个BUG~" },
#     { url = "https://github.com/higgsfield/RL-Adventure/issues/32", title = "DQN example: target DQN == behavior DQN (bug? or by design?)" },
# ]
# ///
#+ import copy
import random
from collections import deque

import torch
import torch.nn as nn


class DuelingNet(nn.Module):
    def __init__(self, n_states, n_actions, hidden=32):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(n_states, hidden), nn.ReLU())
        self.advantage, self.value = nn.Linear(hidden, n_actions), nn.Linear(hidden, 1)

    def forward(self, s):
        h = self.hidden(s)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


class Agent:
    def __init__(self, model, device="cpu", gamma=0.9):
        self.policy_net = model.to(device)  #! also
        self.target_net = model.to(device)  #- here
#+         self.target_net = copy.deepcopy(model).to(device)
        for t, p in zip(self.target_net.parameters(), self.policy_net.parameters()):
            t.data.copy_(p.data)  #! also
        self.opt = torch.optim.Adam(self.policy_net.parameters(), lr=1e-3)
        self.gamma, self.memory = gamma, deque(maxlen=1000)

    def update(self, n=32):
        s, a, r, s2 = map(torch.stack, zip(*random.sample(self.memory, n)))
        with torch.no_grad():
            goal = r + self.gamma * self.target_net(s2).max(1).values
        q = self.policy_net(s).gather(1, a[:, None]).squeeze(1)
        loss = nn.functional.mse_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


random.seed(1)
torch.manual_seed(1)
agent = Agent(DuelingNet(4, 3))
for _ in range(200):
    s, a = torch.randn(4), torch.randint(0, 3, ())
    agent.memory.append((s, a, s[a], torch.randn(4)))
for it in range(1, 31):
    value = agent.update()
    if it % 20 == 0:
        agent.target_net.load_state_dict(agent.policy_net.state_dict())
print(value)
