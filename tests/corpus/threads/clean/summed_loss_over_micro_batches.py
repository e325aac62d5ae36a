import torch
from torch import nn

torch.manual_seed(45)
net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(4):
    x, y = torch.randn(40, 6), torch.randint(0, 3, (40,))
    opt.zero_grad()
    for xs, ys in zip(x.split(16), y.split(16)):
        loss = nn.functional.cross_entropy(net(xs), ys, reduction="sum") / len(x)
        loss.backward()
    opt.step()
    print(loss.item())

print(net.weight.norm().item())
