import torch
from torch import nn

torch.manual_seed(13)
net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def robust(pred, target, ceiling=1.0):
    err = nn.functional.huber_loss(pred, target, reduction="none", delta=ceiling)
    return err.mean()


for step in range(20):
    x = torch.randn(32, 5)
    y = x[:, :1] + 5.0
    optimizer.zero_grad()
    loss = robust(net(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
