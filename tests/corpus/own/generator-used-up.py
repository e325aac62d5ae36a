# /// case
# category = "wiring"
# kind = "optimizer-empty"
# severity = "error"
# names = ["parameters", "params"]
# ///
#-
import torch
from torch import nn

net = nn.Linear(4, 4)
parameters = net.parameters()  #-
#+ parameters = list(net.parameters())
print("parameters:", sum(p.numel() for p in parameters))
opt = torch.optim.SGD(parameters, lr=0.1)  #! here
net(torch.ones(1, 4)).sum().backward()
opt.step()
