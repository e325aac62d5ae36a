import torch
from torch import nn

torch.manual_seed(0)
quantiles = torch.tensor([0.1, 0.5, 0.9])


def pinball(pred, target):
    err = target - pred
    return torch.max(quantiles * err, (quantiles - 1) * err).sum(1).mean()


x = torch.rand(150, 1) * 4
y = torch.sin(x) + (0.1 + 0.2 * x) * torch.randn_like(x)
mean, std = y.mean(), y.std()
yn = (y - mean) / std
net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    for xb, yb in zip(x.split(50), yn.split(50)):
        loss = pinball(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
with torch.no_grad():
    q = net(x) * std + mean
    cover = ((y >= q[:, :1]) & (y <= q[:, 2:])).float().mean()
print(loss.item(), cover.item())
