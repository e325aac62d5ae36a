import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
f = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
h = nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 6))
opt = torch.optim.SGD([*f.parameters(), *h.parameters()], lr=0.05)
for x in torch.randn(4, 10, 6):
    x1, x2 = x + torch.randn_like(x) * 0.2, x + torch.randn_like(x) * 0.2
    z1, z2 = f(x1), f(x2)
    p1, p2 = h(z1), h(z2)
    loss = -(F.cosine_similarity(p1, z2.detach()).mean() + F.cosine_similarity(p2, z1.detach()).mean()) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
