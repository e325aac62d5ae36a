# /// case
# category = "gradient"
# kind = "gradient-cleared-before-step"
# severity = "warning"
# names = ["opt", "optimizer"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)


def closure(x):
    out = net(x)
    value = (out - x.flip(-1)).pow(2).sum()
#+     net.zero_grad()
    value.backward()
    net.zero_grad()  #- here
    return value


for x in torch.randn(5, 7, 3):
    value = closure(x)
    opt.step()  #! also
    print(value.item())
