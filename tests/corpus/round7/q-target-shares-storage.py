# /// case
# title = "The Q target is a detached alias of the prediction and is written to"
# category = "in-place"
# kind = "detached-alias-modified"
# kinds_also_ok = ["detach-shares-storage", "constant-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["target", "detach", "q"]
# symptom = "prediction and target are the same memory, the loss is zero"
# symptom_check = "loss.item() == 0.0"
# cause = "detach shares storage with the prediction"
# fix = "clone"
# ///
import random
from collections import deque

import torch
import torch.nn as nn

random.seed(48)
torch.manual_seed(48)
N_STATES, N_ACTIONS = 4, 3


class Agent:
    def __init__(self, gamma=0.95, lr=1e-3):
        self.online = nn.Sequential(nn.Linear(N_STATES, 24), nn.ReLU(), nn.Linear(24, N_ACTIONS))
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.memory, self.gamma = deque(maxlen=500), gamma

    def remember(self, *transition):
        self.memory.append(transition)

    def replay(self, batch_size):
        batch = random.sample(list(self.memory), batch_size)
        states, actions, rewards, following, done = map(torch.stack, zip(*batch))
        q = self.online(states)
        with torch.no_grad():
            best = self.online(following).max(dim=1).values
        target = q.detach()  #- here
#+         target = q.detach().clone()
        target[torch.arange(batch_size), actions] = rewards + self.gamma * best * (1 - done)  #! also
        loss = nn.functional.mse_loss(q, target)  #! also
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


agent = Agent()
state = torch.randn(N_STATES)
for t in range(60):
    action = torch.randint(0, N_ACTIONS, ())
    following = 0.9 * state + 0.2 * torch.randn(N_STATES)
    reward = (action == state[:N_ACTIONS].argmax()).float()
    agent.remember(state, action, reward, following, torch.tensor(float(t % 20 == 19)))
    state = following
    if t >= 40:
        loss = agent.replay(16)
print("td loss", loss.item())
