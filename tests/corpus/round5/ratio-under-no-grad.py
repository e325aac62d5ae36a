# /// case
# title = "The probability ratio is computed without gradients"
# category = "flags"
# kind = "no-grad-forward"
# kinds_also_ok = ["constant-loss-term", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["ratio", "no_grad", "clip_loss"]
# symptom = "the clipped objective does not train the actor"
# symptom_check = "all(p.grad is None for p in actor.parameters())"
# cause = "torch.no_grad around the ratio"
# fix = "only the old log-probabilities are constants"
# evidence = [
#     { url = "https://github.com/thu-ml/tianshou/issues/742", title = "In PPOPolicy, the ratio is computed with requires_grad `True`." },
#     { url = "https://github.com/seungeunrho/minimalRL/issues/33", title = "The ratio in ppo.py should be detach() ?" },
# ]
# ///
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
            with torch.no_grad():  #- here
                ratio = (dist.log_prob(act[idx]) - logp_old[idx]).exp()  #- also
#+             ratio = (dist.log_prob(act[idx]) - logp_old[idx]).exp()
            surr1 = ratio * adv[idx]
            surr2 = ratio.clamp(1 - eps_clip, 1 + eps_clip) * adv[idx]
            clip_loss = -torch.min(surr1, surr2).mean()  #! also
            vf_loss = (returns[idx] - critic(obs[idx]).squeeze(-1)).square().mean()
            loss = clip_loss + 0.5 * vf_loss
            optim.zero_grad()
            loss.backward()
            optim.step()
    print(epoch, returns.mean().item(), loss.item())
