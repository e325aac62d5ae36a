# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["radius", "offset"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
offset = nn.Parameter(torch.zeros(3))
opt = torch.optim.SGD([offset], lr=0.1)
for _ in range(2):
    radius = offset.pow(2).sum().sqrt()  #- here
#+     radius = (offset.pow(2).sum() + 1e-8).sqrt()
    loss = (radius - 1).pow(2)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item(), offset.tolist())
