import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(33)
trunk, pi, v = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
opt = torch.optim.Adam([*trunk.parameters(), *pi.parameters(), *v.parameters()], lr=1e-3)
for _ in range(8):
    obs = torch.randn(24, 4)
    h = torch.tanh(trunk(obs))
    dist, value = Categorical(logits=pi(h)), v(h).squeeze(-1)
    action = dist.sample()
    returns = (action == 0).float() + 0.1 * torch.randn(24)
    advantage = returns - value
    loss = -(dist.log_prob(action) * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean()
    loss = loss - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
