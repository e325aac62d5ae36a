# /// case
# category = "graph"
# kind = "graph-retained-accumulator"
# severity = "warning"
# names = ["average"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 6)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
average = net.weight.detach().clone()
for _ in range(6):
    x = torch.randn(10, 6)
    opt.zero_grad()
    (net(x) + x).pow(2).mean().backward()
    opt.step()
    average = 0.99 * average + 0.01 * net.weight  #- here
#+     average = 0.99 * average + 0.01 * net.weight.detach()
print(average.norm().item())
