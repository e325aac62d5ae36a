import torch
import torch.nn as nn

torch.manual_seed(29)
trunk = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
policy, value = nn.Linear(24, 3), nn.Linear(24, 1)
opt_p = torch.optim.Adam([*trunk.parameters(), *policy.parameters()], lr=1e-3)
opt_v = torch.optim.Adam(value.parameters(), lr=1e-2)
for it in range(10):
    s = torch.randn(64, 6)
    h = trunk(s)
    dist = torch.distributions.Categorical(logits=policy(h))
    a = dist.sample()
    r = s.gather(1, a[:, None]).squeeze(1)
    v = value(h).squeeze(1)
    loss_p = -(dist.log_prob(a) * (r - v.detach())).mean() - 0.01 * dist.entropy().mean()
    loss_v = 0.5 * (v - r).pow(2).mean()
    opt_p.zero_grad()
    opt_v.zero_grad()
    loss_p.backward(retain_graph=True)
    loss_v.backward()
    opt_p.step()
    opt_v.step()
print(loss_p.item(), loss_v.item())
