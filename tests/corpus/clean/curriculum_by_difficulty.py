import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
X = torch.randn(120, 4)
margin = X.sum(1).abs()
Y = (X.sum(1) > 0).long()
order = margin.argsort(descending=True)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
epochs = 5
for epoch in range(epochs):
    frac = min(1.0, 0.3 + 0.7 * epoch / (epochs - 2))
    pool = order[: int(frac * len(order))]
    net.train()
    for i in pool[torch.randperm(len(pool))].split(24):
        loss = F.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(X).argmax(1) == Y).float().mean()
    print(f"{epoch}: {len(pool)} samples, acc {acc:.3f}")
