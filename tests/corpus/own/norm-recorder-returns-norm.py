# /// case
# category = "gradient"
# kind = "hook-modifies-gradient"
# severity = "warning"
# names = ["record", "log"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
log = []


def record(grad):
    size = grad.norm()
    log.append(size.item())
    return grad / (size + 1e-12)  #- here
#+     return None


for parameter in net.parameters():
    parameter.register_hook(record)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(16, 4)).pow(2).mean().backward()
    opt.step()
print(log[-1])
