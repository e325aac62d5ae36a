import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Deep(nn.Module):
    def __init__(self, dim=16, depth=4, recompute=True):
        super().__init__()
        self.stem = nn.Linear(5, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, 1)
        self.recompute = recompute

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            if self.recompute and self.training:
                h = checkpoint(block, h, use_reentrant=False)
            else:
                h = block(h)
        return self.head(h).squeeze(-1)


torch.manual_seed(127)
model = Deep()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(10):
    model.train()
    x = torch.randn(32, 5)
    loss = nn.functional.huber_loss(model(x), x[:, 0] * x[:, 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        model(x)
print(loss.item())
