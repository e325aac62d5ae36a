# /// case
# category = "graph"
# kind = "graph-built-once"
# severity = "error"
# names = ["table", "positions"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
scale = nn.Parameter(torch.ones(8))
layer = nn.Linear(8, 1)
opt = torch.optim.SGD([scale, *layer.parameters()], lr=0.1)
angles = torch.arange(10.0)[:, None] * torch.logspace(0, -2, 8)
table = torch.sin(angles * scale)  #- here
for _ in range(3):
#+     table = torch.sin(angles * scale)
    loss = layer(torch.randn(10, 8) + table).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
