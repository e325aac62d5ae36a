import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(11)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh())
        self.pi = nn.Linear(32, 3)
        self.v = nn.Linear(32, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h).squeeze(-1)


agent = ActorCritic()
opt = torch.optim.Adam(agent.parameters(), lr=3e-3)
for update in range(6):
    obs = torch.randn(20, 6)
    logits, values = agent(obs)
    dist = Categorical(logits=logits)
    actions = dist.sample()
    returns = torch.randn(20)
    advantage = returns - values.detach()
    policy_loss = -(dist.log_prob(actions) * advantage).mean()
    probs = logits.softmax(-1)
    entropy = -(probs * probs.clamp_min(1e-8).log()).sum(-1).mean()
    value_loss = (returns - values).pow(2).mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * entropy
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
