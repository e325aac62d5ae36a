import torch
from torch import nn

torch.manual_seed(31)


def soft_norm(x, eps=1e-6):
    squared = x.square().sum(-1)
    positive = squared > eps
    return torch.where(positive, torch.where(positive, squared, torch.ones_like(squared)).sqrt(), torch.zeros_like(squared))


class Direction(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        v = self.net(x) * (x[:, :1] > 0)
        n = soft_norm(v)
        return v / torch.where(n > 0, n, torch.ones_like(n))[:, None], n


model = Direction()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(12):
    x = torch.randn(32, 3)
    unit, size = model(x)
    wanted = nn.functional.normalize(x[:, 1:], dim=1)
    loss = -((unit * wanted).sum(1) * (x[:, 0] > 0)).mean() + 0.01 * size.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
