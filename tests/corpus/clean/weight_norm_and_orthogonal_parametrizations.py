import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm

torch.manual_seed(0)


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = weight_norm(nn.Linear(6, 12))
        self.b = orthogonal(nn.Linear(12, 12))
        self.c = nn.Linear(12, 12)
        parametrize.register_parametrization(self.c, "weight", Symmetric())
        self.d = spectral_norm(nn.Linear(12, 1))

    def forward(self, x):
        x = torch.tanh(self.a(x))
        x = x + torch.tanh(self.b(x))
        x = x + torch.tanh(self.c(x))
        return self.d(x)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
x = torch.randn(64, 6)
y = (x[:, :1] * x[:, 1:2]).tanh()
for epoch in range(5):
    for i in torch.randperm(64).split(32):
        loss = (net(x[i]) - y[i]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
with torch.no_grad(), parametrize.cached():
    q = net.b.weight
    print((q.T @ q - torch.eye(12)).abs().max().item(), torch.equal(net.c.weight, net.c.weight.T))
