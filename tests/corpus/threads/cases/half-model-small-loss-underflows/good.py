import torch
from torch import nn

torch.manual_seed(22)
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
dtype = net[0].weight.dtype
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def batch(n=32):
    x = torch.randn(n, 16)
    return x.to(dtype), (x.mean(1, keepdim=True) * 1e-3).to(dtype)


for step in range(10):
    x, y = batch()
    out = net(x) * 1e-3
    loss = ((out - y) ** 2).mean() * 1e-3
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
