# /// case
# category = "mode"
# kind = "graph-break-non-differentiable"
# severity = "warning"
# names = ["keep", "mask"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
importance = nn.Parameter(torch.rand(6))
layer = nn.Linear(6, 1)
opt = torch.optim.SGD([importance, *layer.parameters()], lr=0.1)
for x in torch.randn(4, 20, 6):
    keep = (importance > 0.3).float()  #- here
#+     keep = torch.sigmoid(10 * (importance - 0.3))
    loss = (layer(x * keep).squeeze(1) - x[:, 0]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(importance.grad)
