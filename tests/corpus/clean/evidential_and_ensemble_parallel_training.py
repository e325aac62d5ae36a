import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
ensemble = nn.ModuleList(nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2)) for _ in range(4))
opt = torch.optim.Adam(ensemble.parameters(), lr=5e-3)
X = torch.randn(100, 2)
Y = (X.prod(1) > 0).long()
bags = [torch.randint(0, 80, (80,)) for _ in ensemble]
for epoch in range(4):
    for k in range(4):
        loss = 0
        for net, bag in zip(ensemble, bags):
            i = bag[k * 20 : (k + 1) * 20]
            loss = loss + F.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        p = torch.stack([net(X[80:]).softmax(-1) for net in ensemble])
        disagreement = p.var(0).sum(-1).mean()
        acc = (p.mean(0).argmax(-1) == Y[80:]).float().mean()
    print(epoch, loss.item() / 4, acc.item(), disagreement.item())
