import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class Deep(nn.Module):
    def __init__(self, width=20, depth=5):
        super().__init__()
        self.first = nn.Linear(6, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1)) for _ in range(depth)
        )
        self.last = nn.Linear(width, 1)
        self.saving = True

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            if self.saving and self.training:
                x = x + checkpoint(block, x, use_reentrant=False)
            else:
                x = x + block(x)
        return self.last(x).squeeze(-1)


torch.manual_seed(14)
net = Deep()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
x = torch.randn(80, 6)
y = torch.sin(x[:, 0]) * x[:, 1]
for epoch in range(5):
    net.train()
    for rows in torch.randperm(80).split(20):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
