import torch
from torch import nn

torch.manual_seed(34)
value = nn.Linear(3, 1)
opt = torch.optim.SGD(value.parameters(), lr=0.01)


def bellman_residual(s, r, s2, gamma=0.9):
    with torch.no_grad():
        fixed = r + gamma * value(s2).squeeze(-1)
    semi = (value(s).squeeze(-1) - fixed).pow(2)
    return semi.mean()


for _ in range(12):
    s = torch.randn(16, 3)
    loss = bellman_residual(s, s[:, 0], s + 0.1)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
