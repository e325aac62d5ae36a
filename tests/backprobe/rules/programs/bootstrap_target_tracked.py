"""BP809 bootstrap-target-tracked."""

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
state, following, reward, done = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8, 1), torch.zeros(8, 1)
"""

PROGRAMS = {
    "a square of the difference": HEAD
    + """
for _ in range(3):
    optimizer.zero_grad()
    target = reward + 0.9 * (1 - done) * net(following)  # <- BP809
    (net(state) - target).pow(2).mean().backward()
    optimizer.step()
""",
    "a terminal state has no future": HEAD
    + """
for _ in range(3):
    optimizer.zero_grad()
    target = torch.where(done > 0, reward, reward + net(following) * 0.9)  # <- BP809
    F.huber_loss(net(state), target).backward()
    optimizer.step()
""",
    "an agent of several methods": """
import torch
from torch import nn
import torch.nn.functional as F

class Agent:
    def __init__(self):
        self.q = nn.Linear(4, 2)
        self.optim = torch.optim.SGD(self.q.parameters(), lr=0.1)

    def target(self, reward, state):
        return reward + 0.99 * self.q(state).amax(1)  # <- BP809

    def learn(self, state, reward, following):
        loss = F.smooth_l1_loss(self.q(state)[:, 0], self.target(reward, following))
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()

agent = Agent()
for _ in range(3):
    agent.learn(torch.randn(8, 4), torch.randn(8), torch.randn(8, 4))
""",
    "the factor is learned": HEAD
    + """
gain = nn.Parameter(torch.ones(1))
(net(state) - (reward + gain * net(following))).pow(2).mean().backward()
""",
    "no factor": HEAD + "(net(state) - (reward + net(following))).pow(2).mean().backward()\n",
    "no data": HEAD + "(net(state) - 0.9 * net(following)).pow(2).mean().backward()\n",
    "one output on both sides": HEAD + "out = net(state)\n(out - (reward + 0.9 * out)).pow(2).mean().backward()\n",
}
