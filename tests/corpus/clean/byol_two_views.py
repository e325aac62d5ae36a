import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
predictor = nn.Linear(8, 8)
teacher = copy.deepcopy(online)
for p in teacher.parameters():
    p.requires_grad = False
opt = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9)


def regression(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=-1).mean()


for x in torch.randn(5, 12, 10):
    one, two = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    with torch.no_grad():
        z1, z2 = teacher(one), teacher(two)
    loss = regression(predictor(online(one)), z2) + regression(predictor(online(two)), z1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), online.parameters()):
            old.mul_(0.99).add_(new, alpha=0.01)
print(loss.item())
