from collections import namedtuple

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
Rollout = namedtuple("Rollout", "states actions log_probs returns advantages")


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.pi = nn.Linear(32, 2)
        self.v = nn.Linear(32, 1)

    def forward(self, s):
        h = self.trunk(s)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def collect(net, steps=32, gamma=0.9):
    states, actions, log_probs, rewards, values = [], [], [], [], []
    state = torch.randn(4)
    for _ in range(steps):
        with torch.no_grad():
            dist, value = net(state)
            action = dist.sample()
        states.append(state)
        actions.append(action)
        log_probs.append(dist.log_prob(action))
        values.append(value)
        rewards.append(float(action.item() == (state[0] > 0)))
        state = 0.8 * state + 0.4 * torch.randn(4)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    advantages = returns - torch.stack(values)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return Rollout(torch.stack(states), torch.stack(actions), torch.stack(log_probs), returns, advantages)


net = ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)
for iteration in range(3):
    batch = collect(net)
    for _ in range(2):
        for part in torch.randperm(len(batch.returns)).split(16):
            dist, value = net(batch.states[part])
            ratio = (dist.log_prob(batch.actions[part]) - batch.log_probs[part]).exp()
            advantage = batch.advantages[part]
            policy = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            loss = policy + 0.5 * (value - batch.returns[part]).pow(2).mean() - 0.01 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
    print(iteration, batch.returns.mean().item())
