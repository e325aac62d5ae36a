import torch
import torch.nn as nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 24), nn.Tanh())
        self.pi, self.v = nn.Linear(24, 3), nn.Linear(24, 1)

    def forward(self, s):
        h = self.trunk(s)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


torch.manual_seed(103)
agent = Agent()
optimizer = torch.optim.RMSprop(agent.parameters(), lr=2e-3)
for episode in range(8):
    log_probs, values, rewards, entropies = [], [], [], []
    state = torch.randn(3)
    for _ in range(12):
        dist, value = agent(state)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        values.append(value)
        rewards.append(float(action == state.argmax()))
        state = 0.7 * state + 0.5 * torch.randn(3)
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + 0.8 * g
        returns.append(g)
    returns = torch.tensor(returns[::-1])
    values = torch.stack(values)
    advantage = (returns - values).detach()
    policy_loss = -(torch.stack(log_probs) * advantage).mean()
    value_loss = nn.functional.mse_loss(values, returns)
    loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    print(episode, sum(rewards), loss.item())
