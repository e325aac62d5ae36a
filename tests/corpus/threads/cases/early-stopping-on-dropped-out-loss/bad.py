import torch
from torch import nn


def val_loss(net, held):
    x, y = held
    out = net(x)
    return float(nn.functional.mse_loss(out, y).detach())


torch.manual_seed(15)
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(96, 4)
y = x.sum(1, keepdim=True)
held = (x[64:], y[64:])
best, patience = float("inf"), 0
for epoch in range(15):
    for xb, yb in zip(x[:64].split(16), y[:64].split(16)):
        adam.zero_grad()
        nn.functional.mse_loss(net(xb), yb).backward()
        adam.step()
    now = val_loss(net, held)
    best, patience = (now, 0) if now < best else (best, patience + 1)
    if patience > 4:
        break
print(best)
