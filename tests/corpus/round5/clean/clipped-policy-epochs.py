import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(38)
actor, critic = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 2)), nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 1))
log_std = nn.Parameter(torch.full((2,), -0.5))
params = [*actor.parameters(), *critic.parameters(), log_std]
optimizer = torch.optim.Adam(params, lr=2e-3)
for iteration in range(4):
    with torch.no_grad():
        obs = torch.randn(64, 4)
        dist = Normal(actor(obs), log_std.exp())
        act = dist.sample()
        old = dist.log_prob(act).sum(1)
        ret = -(act - obs[:, :2]).square().sum(1)
        adv = ret - critic(obs).squeeze(1)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for epoch in range(3):
        for idx in torch.randperm(64).split(32):
            dist = Normal(actor(obs[idx]), log_std.exp())
            ratio = (dist.log_prob(act[idx]).sum(1) - old[idx]).exp()
            surrogate = torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx])
            value_loss = (critic(obs[idx]).squeeze(1) - ret[idx]).square().mean()
            loss = -surrogate.mean() + 0.5 * value_loss - 0.001 * dist.entropy().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(params, 0.5)
            optimizer.step()
    print(iteration, ret.mean().item())
