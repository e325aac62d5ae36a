import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.net(x)


class Encoder(nn.Module):
    def __init__(self, d=12, use_checkpoint=True):
        super().__init__()
        self.inp = nn.Linear(5, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(3))
        self.tail = nn.Sequential(Block(d), Block(d))
        self.out = nn.Linear(d, 2)
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            if self.use_checkpoint and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        if self.training:
            x = checkpoint_sequential(self.tail, 2, x, use_reentrant=False)
        else:
            x = self.tail(x)
        return self.out(x)


model = Encoder()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
x, y = torch.randn(32, 5), torch.randint(0, 2, (32,))
for step in range(5):
    model.train()
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    model.eval()
    with torch.no_grad():
        print(step, loss.item(), nn.functional.cross_entropy(model(x), y).item())
