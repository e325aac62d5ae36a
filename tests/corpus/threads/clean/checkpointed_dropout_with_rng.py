import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(44)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.2)) for _ in range(3))
head = nn.Linear(8, 1)
opt = torch.optim.Adam([*blocks.parameters(), *head.parameters()], lr=1e-3)
for _ in range(5):
    x = torch.randn(8, 8)
    h = x
    for block in blocks:
        h = h + checkpoint(block, h, use_reentrant=False)
    loss = (head(h) - x.mean(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
