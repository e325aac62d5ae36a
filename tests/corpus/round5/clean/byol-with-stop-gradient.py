import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)
online = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8))
predictor = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad = False
optimizer = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9)


def distance(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=1).mean()


for step in range(10):
    x = torch.randn(32, 16)
    a, b = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    with torch.no_grad():
        za, zb = target(a), target(b)
    loss = distance(predictor(online(a)), zb) + distance(predictor(online(b)), za)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for t, o in zip(target.parameters(), online.parameters()):
            t.mul_(0.99).add_(o, alpha=0.01)
    print(step, loss.item())
