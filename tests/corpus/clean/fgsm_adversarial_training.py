import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()


def attack(x, y, epsilon=0.1):
    x = x.detach().clone().requires_grad_(True)
    (g,) = torch.autograd.grad(loss_fn(net(x), y), x)
    return (x + epsilon * g.sign()).detach()


for x in torch.randn(5, 12, 6):
    y = (x[:, 0] > 0).long()
    opt.zero_grad()
    loss = loss_fn(net(attack(x, y)), y)
    loss.backward()
    opt.step()
print(loss.item())
