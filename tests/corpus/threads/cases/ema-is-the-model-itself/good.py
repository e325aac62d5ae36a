import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 6))
ema = copy.deepcopy(net)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)


@torch.no_grad()
def update_ema(source, target, decay=0.99):
    for s, t in zip(source.parameters(), target.parameters()):
        t.mul_(decay).add_(s, alpha=1 - decay)


for step in range(10):
    x0 = torch.randn(32, 6)
    noise = torch.randn_like(x0)
    loss = (net(x0 + noise) - noise).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    update_ema(net, ema)
print(loss.item(), copy.__name__)
