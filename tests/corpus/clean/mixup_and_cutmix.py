import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Beta

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
beta = Beta(torch.tensor(0.4), torch.tensor(0.4))
X, Y = torch.rand(48, 1, 8, 8), torch.randint(0, 3, (48,))


def mixup(x, y):
    lam = beta.sample().item()
    perm = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


def cutmix(x, y):
    lam = beta.sample().item()
    perm = torch.randperm(len(x))
    r = int(8 * (1 - lam) ** 0.5)
    i, j = torch.randint(0, 8 - r + 1, (2,)).tolist() if r < 8 else (0, 0)
    x = x.clone()
    x[:, :, i : i + r, j : j + r] = x[perm][:, :, i : i + r, j : j + r]
    return x, y, y[perm], 1 - r * r / 64


for epoch in range(3):
    correct = 0.0
    for k, idx in enumerate(torch.randperm(48).split(12)):
        x, ya, yb, lam = (mixup if k % 2 else cutmix)(X[idx], Y[idx])
        out = net(x)
        loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        pred = out.argmax(1)
        correct += lam * (pred == ya).sum().item() + (1 - lam) * (pred == yb).sum().item()
    print(epoch, loss.item(), correct / 48)
