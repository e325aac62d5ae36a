import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
skipped = 0
for step in range(10):
    x = torch.randn(16, 5)
    if step == 4:
        x[3, 2] = float("nan")
    y = x[:, :1] * 2
    loss = nn.functional.smooth_l1_loss(net(x), y)
    if not torch.isfinite(loss):
        skipped += 1
        print("bad batch", step)
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), skipped)
