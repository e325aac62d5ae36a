import torch
from torch import nn

torch.manual_seed(0)


class Velocity(nn.Module):
    def __init__(self, classes=3, dim=2, width=32):
        super().__init__()
        self.emb = nn.Embedding(classes + 1, 8)
        self.null = classes
        self.net = nn.Sequential(nn.Linear(dim + 1 + 8, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, dim))

    def forward(self, x, t, y):
        if self.training:
            drop = torch.rand(y.shape) < 0.2
            y = torch.where(drop, torch.full_like(y, self.null), y)
        return self.net(torch.cat([x, t, self.emb(y)], dim=-1))

    @torch.no_grad()
    def generate(self, y, steps=8, scale=1.5):
        x = torch.randn(len(y), 2)
        for k in range(steps):
            t = torch.full((len(y), 1), k / steps)
            cond = self(x, t, y)
            free = self(x, t, torch.full_like(y, self.null))
            x = x + (free + scale * (cond - free)) / steps
        return x


model = Velocity()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
means = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0]])
model.train()
for step in range(15):
    y = torch.randint(3, (48,))
    x1 = means[y] + 0.1 * torch.randn(48, 2)
    x0 = torch.randn_like(x1)
    t = torch.rand(48, 1)
    xt = (1 - t) * x0 + t * x1
    loss = ((model(xt, t, y) - (x1 - x0)) ** 2).sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
print(loss.item(), model.generate(torch.arange(3)).shape)
