from collections import deque

import torch
import torch.nn as nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.q = nn.GRUCell(4, 12), nn.Linear(12, 3)

    def forward(self, obs, h):
        h = self.rnn(obs, h)
        return self.q(h), h


@torch.no_grad()
def run_episode(agent, length=5):
    h, steps = torch.zeros(2, 12), []
    for _ in range(length):
        obs = torch.randn(2, 4)
        q, h = agent(obs, h)
        steps.append({"obs": obs, "act": q.argmax(1), "hidden": h, "rew": torch.rand(2)})
    return steps


torch.manual_seed(8)
agent, buffer = Agent(), deque(maxlen=20)
opt = torch.optim.RMSprop(agent.parameters(), lr=1e-3)
for episode in range(6):
    buffer.append(run_episode(agent))
    h, loss = torch.zeros(2, 12), 0.0
    for step in buffer[-1]:
        q, h = agent(step["obs"], h)
        loss = loss + (q.gather(1, step["act"].unsqueeze(1)).squeeze(1) - step["rew"]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), len(buffer))
