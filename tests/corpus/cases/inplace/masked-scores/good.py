import torch
from torch import nn

torch.manual_seed(0)
query, key = nn.Linear(4, 4), nn.Linear(4, 4)
x = torch.randn(3, 6, 4)
weights = (query(x) @ key(x).transpose(1, 2)).softmax(-1)
future = torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)
weights = weights.masked_fill(future, 0.0)
context = weights @ x
context.mean().backward()
print(query.weight.grad.norm())
