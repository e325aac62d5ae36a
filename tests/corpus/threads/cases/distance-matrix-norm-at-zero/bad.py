import torch
from torch import nn

torch.manual_seed(4)
embed = nn.Linear(7, 3)
opt = torch.optim.SGD(embed.parameters(), lr=0.01)


def pairwise(z):
    squared = (z[:, None] - z[None]).pow(2).sum(-1)
    distance = squared.sqrt()
    off = ~torch.eye(len(z), dtype=torch.bool)
    return torch.where(off, distance, torch.zeros_like(distance))


for step in range(5):
    x = torch.randn(10, 7)
    labels = torch.randint(0, 2, (10,))
    same = (labels[:, None] == labels[None]).float()
    d = pairwise(embed(x))
    loss = (same * d + (1 - same) * torch.relu(1 - d)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
