import torch
from torch import nn

torch.manual_seed(0)
embed = nn.Linear(6, 3)
sgd = torch.optim.SGD(embed.parameters(), lr=0.1)


def triplet(anchor, positive, negative):
    near = (embed(anchor) - embed(positive)).norm()
    far = (embed(anchor) - embed(negative)).norm()
    return (1.0 + near - far).clamp(min=0.0)


for _ in range(3):
    loss = triplet(*torch.randn(3, 6))
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    print(loss.item())
