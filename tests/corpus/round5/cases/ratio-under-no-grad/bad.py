import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(8)
actor = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optim = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)
eps_clip, repeat = 0.2, 3


def collect(n=64):
    obs = torch.randn(n, 6)
    with torch.no_grad():
        dist = Categorical(logits=actor(obs))
        act = dist.sample()
        logp = dist.log_prob(act)
        v = critic(obs).squeeze(-1)
    rew = (act == obs[:, :3].argmax(1)).float()
    return obs, act, logp, rew, rew - v


for epoch in range(4):
    obs, act, logp_old, returns, adv = collect()
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(repeat):
        for idx in torch.randperm(len(obs)).split(32):
            dist = Categorical(logits=actor(obs[idx]))
            with torch.no_grad():
                ratio = (dist.log_prob(act[idx]) - logp_old[idx]).exp()
            surr1 = ratio * adv[idx]
            surr2 = ratio.clamp(1 - eps_clip, 1 + eps_clip) * adv[idx]
            clip_loss = -torch.min(surr1, surr2).mean()
            vf_loss = (returns[idx] - critic(obs[idx]).squeeze(-1)).square().mean()
            loss = clip_loss + 0.5 * vf_loss
            optim.zero_grad()
            loss.backward()
            optim.step()
    print(epoch, returns.mean().item(), loss.item())
