# /// case
# category = "inplace"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["weights", "attention"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
query, key = nn.Linear(4, 4), nn.Linear(4, 4)
x = torch.randn(3, 6, 4)
weights = (query(x) @ key(x).transpose(1, 2)).softmax(-1)  #! also
future = torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)
weights.masked_fill_(future, 0.0)  #- here
#+ weights = weights.masked_fill(future, 0.0)
context = weights @ x
context.mean().backward()  #! also
print(query.weight.grad.norm())
