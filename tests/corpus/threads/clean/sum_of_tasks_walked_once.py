import torch
from torch import nn

torch.manual_seed(24)
net = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for _ in range(6):
    tasks = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)]
    total = torch.zeros(())
    parts = []
    for x, y in tasks:
        loss = nn.functional.smooth_l1_loss(net(x), y)
        parts.append(loss.item())
        total = total + loss
    opt.zero_grad()
    total.backward()
    opt.step()
print(parts)
