import torch
from torch import nn

torch.manual_seed(0)
points = nn.Parameter(torch.randn(12, 2))
truth = torch.rand(12, 2) * 4
D = torch.cdist(truth, truth)
opt = torch.optim.Adam([points], lr=0.1)
off = ~torch.eye(12, dtype=torch.bool)
for it in range(25):
    diff = points[:, None] - points[None]
    sq = diff.pow(2).sum(-1)
    safe = torch.where(sq > 0, sq, torch.ones_like(sq))
    dist = torch.where(sq > 0, safe.sqrt(), torch.zeros_like(sq))
    stress = ((dist - D)[off] ** 2).sum() / (D[off] ** 2).sum()
    opt.zero_grad()
    stress.backward()
    opt.step()
print(stress.item())
