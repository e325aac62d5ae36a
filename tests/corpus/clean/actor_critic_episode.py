import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 12)
        self.pi, self.v = nn.Linear(12, 2), nn.Linear(12, 1)

    def forward(self, s):
        h = torch.tanh(self.body(s))
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


agent = Agent()
opt = torch.optim.Adam(agent.parameters(), lr=1e-2)
for episode in range(3):
    log_probs, values, rewards, entropies = [], [], [], []
    state = torch.zeros(3)
    for t in range(6):
        dist, value = agent(state)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        values.append(value)
        entropies.append(dist.entropy())
        rewards.append(float(action) - 0.1 * t)
        state = state + 0.1 * torch.randn(3)
    returns, total = [], 0.0
    for r in reversed(rewards):
        total = r + 0.9 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    values = torch.stack(values)
    advantage = returns - values.detach()
    policy_loss = -(torch.stack(log_probs) * advantage).sum()
    value_loss = nn.functional.mse_loss(values, returns)
    loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(episode, sum(rewards), loss.item())
