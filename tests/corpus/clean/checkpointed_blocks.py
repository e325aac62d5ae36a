import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.out(x)


net = Deep(4, 8)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for x in torch.randn(4, 10, 8):
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
print(loss.item())
