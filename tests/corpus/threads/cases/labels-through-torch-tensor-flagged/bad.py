import torch
from torch import nn

torch.manual_seed(13)
embed = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.Adam(embed.parameters(), lr=1e-3)


def triplet(anchor, positive, negative, margin=0.5):
    losses = []
    for a, p, n in zip(anchor, positive, negative):
        near = (embed(a) - embed(p)).pow(2).sum()
        far = (embed(a) - embed(n)).pow(2).sum()
        losses.append(torch.relu(near - far + margin))
    return torch.tensor(losses, requires_grad=True).mean()


for step in range(5):
    batch = torch.randn(3, 8, 9)
    loss = triplet(*batch)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
