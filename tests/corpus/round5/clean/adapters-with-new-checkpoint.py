import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(19)


class Block(nn.Module):
    def __init__(self, dim, r=2):
        super().__init__()
        self.base = nn.Linear(dim, dim).requires_grad_(False)
        self.down, self.up = nn.Linear(dim, r, bias=False), nn.Linear(r, dim, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return x + torch.tanh(self.base(x) + self.up(self.down(x)))


embed = nn.Embedding(20, 12).requires_grad_(False)
blocks, head = nn.ModuleList(Block(12) for _ in range(2)), nn.Linear(12, 2)
params = [p for p in [*blocks.parameters(), *head.parameters()] if p.requires_grad]
optimizer = torch.optim.AdamW(params, lr=5e-3)
ids, y = torch.randint(0, 20, (16, 6)), torch.randint(0, 2, (16,))
for step in range(8):
    h = embed(ids)
    for block in blocks:
        h = checkpoint(block, h, use_reentrant=False)
    loss = nn.functional.cross_entropy(head(h.mean(1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
