import torch
from torch import nn


class Finetuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
model = Finetuned()
groups = [{"params": model.parameters()}, {"params": model.head.parameters(), "lr": 1e-2}]
optimizer = torch.optim.Adam(groups, lr=1e-4)
for _ in range(3):
    x, y = torch.randn(8, 8), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
