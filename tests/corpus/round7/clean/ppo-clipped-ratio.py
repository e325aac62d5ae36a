import torch
import torch.nn as nn
from torch.distributions import Normal

torch.manual_seed(104)


class GaussianPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())


@torch.no_grad()
def collect(policy, n):
    obs = torch.randn(n, 2)
    dist = policy(obs)
    act = dist.sample()
    reward = -(act - obs.sum(1, keepdim=True)).square().squeeze(1)
    return {"obs": obs, "act": act, "logp": dist.log_prob(act).sum(1), "adv": (reward - reward.mean()) / (reward.std() + 1e-8)}


policy = GaussianPolicy()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for iteration in range(3):
    batch = collect(policy, 64)
    for epoch in range(3):
        for idx in torch.randperm(64).split(32):
            logp = policy(batch["obs"][idx]).log_prob(batch["act"][idx]).sum(1)
            ratio = (logp - batch["logp"][idx]).exp()
            clipped = ratio.clamp(0.8, 1.2)
            adv = batch["adv"][idx]
            loss = -torch.min(ratio * adv, clipped * adv).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        kl = (batch["logp"] - policy(batch["obs"]).log_prob(batch["act"]).sum(1)).mean()
    print(iteration, loss.item(), kl.item())
