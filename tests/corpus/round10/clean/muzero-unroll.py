import torch
import torch.nn.functional as F
from torch import nn


class MuNet(nn.Module):
    def __init__(self, obs_dim=6, actions=3, hidden=24):
        super().__init__()
        self.actions = actions
        self.represent = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.dynamics = nn.Sequential(nn.Linear(hidden + actions, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.reward = nn.Linear(hidden, 1)
        self.value = nn.Linear(hidden, 1)
        self.policy = nn.Linear(hidden, actions)

    @staticmethod
    def normalise(h):
        low, high = h.min(-1, keepdim=True).values, h.max(-1, keepdim=True).values
        return (h - low) / (high - low + 1e-5)

    def initial(self, obs):
        h = self.normalise(self.represent(obs))
        return h, self.policy(h), self.value(h).squeeze(-1)

    def recurrent(self, h, action):
        h = self.normalise(self.dynamics(torch.cat([h, F.one_hot(action, self.actions).float()], -1)))
        return h, self.reward(h).squeeze(-1), self.policy(h), self.value(h).squeeze(-1)


def trajectories(n, unroll):
    obs = torch.randn(n, 6)
    actions = torch.randint(3, (n, unroll))
    position = torch.cat([obs[:, :1], obs[:, :1] + 0.5 * (actions - 1).cumsum(1)], 1)
    rewards = 1 - position[:, 1:].abs()
    values = 2 - position.square().clamp(max=4)
    best = torch.where(position > 0.25, 0, torch.where(position < -0.25, 2, 1))
    return obs, actions, rewards, values, best


def unrolled_loss(net, obs, actions, rewards, values, best):
    h, logits, value = net.initial(obs)
    loss = F.cross_entropy(logits, best[:, 0]) + F.mse_loss(value, values[:, 0])
    unroll = actions.shape[1]
    for k in range(unroll):
        h, reward, logits, value = net.recurrent(h, actions[:, k])
        h.register_hook(lambda g: 0.5 * g)
        step = F.mse_loss(reward, rewards[:, k]) + F.mse_loss(value, values[:, k + 1]) + F.cross_entropy(logits, best[:, k + 1])
        step.register_hook(lambda g: g / unroll)
        loss = loss + step
    return loss


torch.manual_seed(27)
net = MuNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
data = trajectories(800, unroll=4)
curve = []
for it in range(200):
    rows = torch.randint(800, (64,))
    loss = unrolled_loss(net, *(t[rows] for t in data))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    curve.append(loss.item())
print("loss", curve[0], "->", curve[-1])
