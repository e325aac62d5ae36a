import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
x = torch.randn(128, 10)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
optim = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def criterion(logits, target):
    error_rate = (1 - logits.softmax(dim=1).gather(1, target[:, None])).mean()
    return F.cross_entropy(logits, target) + 2.0 * error_rate, error_rate


for epoch in range(10):
    for xb, yb in zip(x.split(32), y.split(32)):
        optim.zero_grad()
        loss, error_rate = criterion(net(xb), yb)
        loss.backward()
        optim.step()
    print(epoch, loss.item())
