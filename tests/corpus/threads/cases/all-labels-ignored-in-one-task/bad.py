import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)
trunk = nn.Linear(6, 8)
shape_head, colour_head = nn.Linear(8, 3), nn.Linear(8, 4)
heads = nn.ModuleList([trunk, shape_head, colour_head])
opt = torch.optim.SGD(heads.parameters(), lr=0.1)
totals = []


def task_loss(logits, labels):
    return F.cross_entropy(logits, labels, ignore_index=-1)


for step in range(6):
    x = torch.randn(8, 6)
    shape = torch.randint(0, 3, (8,))
    colour = torch.randint(0, 4, (8,)) if step != 3 else torch.full((8,), -1)
    h = torch.relu(trunk(x))
    total = task_loss(shape_head(h), shape) + task_loss(colour_head(h), colour)
    opt.zero_grad()
    total.backward()
    opt.step()
    totals.append(total.item())
print(sum(totals) / len(totals))
