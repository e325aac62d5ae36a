import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
online = nn.Sequential(nn.Linear(10, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 8))
predictor = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9)


@torch.no_grad()
def follow(tau=0.95):
    for t, o in zip(target.parameters(), online.parameters()):
        t.lerp_(o, 1 - tau)


def distance(p, z):
    return 2 - 2 * F.cosine_similarity(p, z, dim=1).mean()


for step in range(6):
    x = torch.randn(16, 10)
    one, two = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    with torch.no_grad():
        z1, z2 = target(one), target(two)
    loss = distance(predictor(online(one)), z2) + distance(predictor(online(two)), z1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    follow()
print(loss.item())
