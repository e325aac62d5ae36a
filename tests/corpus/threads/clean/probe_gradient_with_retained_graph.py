import torch
from torch import nn

torch.manual_seed(13)
trunk, a, b = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(8, 1)
opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()], lr=1e-3)
cosines = []
for _ in range(6):
    x = torch.randn(16, 5)
    h = trunk(x).relu()
    first = nn.functional.cross_entropy(a(h), (x[:, 0] > 0).long())
    second = (b(h).squeeze(-1) - x[:, 1]).pow(2).mean()
    g1 = torch.autograd.grad(first, trunk.weight, retain_graph=True)[0].flatten()
    g2 = torch.autograd.grad(second, trunk.weight, retain_graph=True)[0].flatten()
    cosines.append(torch.cosine_similarity(g1, g2, dim=0).item())
    opt.zero_grad()
    (first + second).backward()
    opt.step()
print(cosines)
