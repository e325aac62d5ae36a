import torch
from torch import nn

torch.manual_seed(0)


class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x * mask.div_(keep)


class Block(nn.Module):
    def __init__(self, d, p):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(d), nn.Linear(d, d)
        self.gamma = nn.Parameter(1e-4 * torch.ones(d))
        self.path = DropPath(p)

    def forward(self, x):
        return x + self.path(self.gamma * torch.relu(self.fc(self.norm(x))))


d, depth = 10, 4
model = nn.Sequential(nn.Linear(6, d), *[Block(d, 0.3 * i / (depth - 1)) for i in range(depth)], nn.Linear(d, 2))
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
X = torch.randn(64, 6)
Y = (X[:, 0] > 0).long()
loss_ema = 0.0
for it in range(12):
    idx = torch.randint(64, (16,))
    loss = nn.functional.cross_entropy(model(X[idx]), Y[idx])
    loss_ema = 0.9 * loss_ema + 0.1 * loss.detach()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss_ema / (1 - 0.9**12)))
