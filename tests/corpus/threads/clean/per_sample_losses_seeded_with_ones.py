import torch
from torch import nn

torch.manual_seed(25)
net = nn.Linear(5, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
weights = torch.tensor([1.0, 3.0])
for _ in range(6):
    x, y = torch.randn(12, 5), torch.randint(0, 2, (12,))
    losses = nn.functional.cross_entropy(net(x), y, reduction="none")
    opt.zero_grad()
    share = weights[y] / weights[y].sum()
    losses.backward(gradient=share)
    opt.step()
print(losses.mean().item())
