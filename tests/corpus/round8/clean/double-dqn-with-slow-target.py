import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class QNet(nn.Module):
    def __init__(self, observation, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observation, 32), nn.ReLU())
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, actions)

    def forward(self, x):
        h = self.body(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


@torch.no_grad()
def track(slow, fast, rate):
    for s, f in zip(slow.parameters(), fast.parameters()):
        s.mul_(1 - rate).add_(f, alpha=rate)


torch.manual_seed(7)
online = QNet(4, 3)
target = copy.deepcopy(online)
target.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
for step in range(16):
    state, action = torch.randn(64, 4), torch.randint(0, 3, (64,))
    following = state + 0.1 * F.one_hot(action, 4)
    reward = -following.abs().sum(1)
    with torch.no_grad():
        best = online(following).argmax(1, keepdim=True)
        goal = reward + 0.9 * target(following).gather(1, best).squeeze(1)
    predicted = online(state).gather(1, action[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(predicted, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    track(target, online, 0.05)
    if step % 4 == 0:
        print(step, loss.item())
