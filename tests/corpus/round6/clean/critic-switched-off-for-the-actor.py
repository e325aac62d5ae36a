import torch
import torch.nn as nn

torch.manual_seed(12)
actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
oa = torch.optim.Adam(actor.parameters(), lr=1e-3)
oc = torch.optim.Adam(critic.parameters(), lr=1e-3)
for it in range(8):
    s, a = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
    r = -(a - s[:, :1].tanh()).abs()
    lc = (critic(torch.cat([s, a], 1)) - r).pow(2).mean()
    oc.zero_grad()
    lc.backward()
    oc.step()
    critic.requires_grad_(False)
    la = -critic(torch.cat([s, actor(s)], 1)).mean()
    oa.zero_grad()
    la.backward()
    oa.step()
    critic.requires_grad_(True)
print(lc.item(), la.item())
