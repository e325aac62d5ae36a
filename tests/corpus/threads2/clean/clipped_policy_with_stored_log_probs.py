import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(6)
body, pi, v = nn.Sequential(nn.Linear(4, 16), nn.Tanh()), nn.Linear(16, 2), nn.Linear(16, 1)
params = [*body.parameters(), *pi.parameters(), *v.parameters()]
optim = torch.optim.Adam(params, lr=3e-3)


@torch.no_grad()
def rollout(n=40):
    obs = torch.randn(n, 4)
    h = body(obs)
    dist = Categorical(logits=pi(h))
    act = dist.sample()
    ret = (act == (obs[:, 0] > 0)).float()
    return obs, act, dist.log_prob(act), ret, ret - v(h).squeeze(1)


for epoch in range(2):
    obs, act, old, ret, adv = rollout()
    for _ in range(3):
        h = body(obs)
        dist = Categorical(logits=pi(h))
        ratio = (dist.log_prob(act) - old).exp()
        clipped = ratio.clamp(0.8, 1.2)
        loss = -torch.min(ratio * adv, clipped * adv).mean() + 0.5 * (v(h).squeeze(1) - ret).pow(2).mean()
        loss = loss - 0.01 * dist.entropy().mean()
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 0.5)
        optim.step()
print(loss.item())
