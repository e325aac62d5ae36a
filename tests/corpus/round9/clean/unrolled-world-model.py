import torch
from torch import nn
import torch.nn.functional as F


def halve(grad):
    return grad * 0.5


class Dynamics(nn.Module):
    def __init__(self, width=24, actions=3):
        super().__init__()
        self.actions = actions
        self.mix = nn.Linear(width + actions, width)
        self.norm = nn.LayerNorm(width)
        self.reward = nn.Linear(width, 1)

    def forward(self, hidden, action):
        one_hot = F.one_hot(action, self.actions).float()
        hidden = self.norm(hidden + F.relu(self.mix(torch.cat([hidden, one_hot], 1))))
        return hidden, self.reward(hidden).squeeze(1)


class WorldModel(nn.Module):
    def __init__(self, observation=4, width=24):
        super().__init__()
        self.represent = nn.Sequential(nn.Linear(observation, width), nn.LayerNorm(width))
        self.dynamics = Dynamics(width)
        self.value = nn.Linear(width, 1)

    def unroll(self, observation, actions):
        hidden = self.represent(observation)
        rewards = []
        for action in actions.unbind(1):
            if hidden.requires_grad:
                hidden.register_hook(halve)
            hidden, reward = self.dynamics(hidden, action)
            if reward.requires_grad:
                reward.register_hook(lambda grad: grad / actions.shape[1])
            rewards.append(reward)
        return torch.stack(rewards, 1), self.value(hidden).squeeze(1)


def simulate(count, length=5):
    state = torch.randn(count, 4)
    actions = torch.randint(0, 3, (count, length))
    rewards, now = [], state
    for action in actions.unbind(1):
        now = 0.9 * now.roll(1, 1) + 0.1 * (action.float().unsqueeze(1) - 1)
        rewards.append(now.mean(1))
    return state, actions, torch.stack(rewards, 1), now.square().mean(1)


torch.manual_seed(137)
model = WorldModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(15):
    observation, actions, rewards, value = simulate(64)
    predicted, final = model.unroll(observation, actions)
    loss = (predicted - rewards).square().sum(1).mean() + (final - value).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    check = model.unroll(*simulate(16)[:2])[0].std().item()
print(f"{loss.item():.4f} {check:.4f}")
