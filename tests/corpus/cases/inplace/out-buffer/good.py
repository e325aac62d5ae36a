import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 4)
buffer = torch.empty(5, 4)
x = torch.randn(5, 4)
buffer = torch.mm(x, layer.weight)
print(buffer.sum())
