import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(58)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.log_std = nn.Linear(3, 2), nn.Parameter(torch.full((2,), -0.5))

    def forward(self, obs):
        return Normal(self.mu(obs), self.log_std.clamp(-5, 2).exp())


policy = Policy()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(8):
    obs = torch.randn(32, 3)
    dist = policy(obs)
    action = dist.rsample()
    loss = (action - obs[:, :2]).pow(2).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(policy.log_std.tolist())
