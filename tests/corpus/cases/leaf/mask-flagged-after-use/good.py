import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Linear(6, 6)
gates = torch.ones(6)
x = torch.randn(10, 6)
gates.requires_grad_(True)
hidden = torch.tanh(trunk(x)) * gates
importance = hidden.pow(2).mean()
importance.backward()
ranking = gates.grad
order = ranking.argsort() if ranking is not None else torch.arange(6)
print(order, ranking)
keep = order[:3]
print(keep.tolist())
