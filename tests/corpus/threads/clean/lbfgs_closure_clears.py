import torch
from torch import nn

torch.manual_seed(50)
x = torch.linspace(-2, 2, 50).unsqueeze(1)
y = x.sin()
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
opt = torch.optim.LBFGS(net.parameters(), max_iter=6, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    return loss


for _ in range(4):
    print(opt.step(closure).item())
