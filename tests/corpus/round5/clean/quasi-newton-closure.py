import torch
from torch import nn

torch.manual_seed(15)
x = torch.linspace(-1, 1, 60)[:, None]
y = torch.exp(-4 * x ** 2) + 0.02 * torch.randn_like(x)
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=8, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = (net(x) - y).square().mean() + 1e-4 * sum(p.square().sum() for p in net.parameters())
    loss.backward()
    return loss


for epoch in range(4):
    print(epoch, optimizer.step(closure).item())
