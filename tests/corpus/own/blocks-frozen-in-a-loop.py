# /// case
# category = "leaf"
# kind = "freeze-without-effect"
# severity = "warning"
# names = ["block"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.ReLU()) for _ in range(3)], nn.Linear(6, 2))
for block in net[:2]:
    block.requires_grad = False  #- here
#+     block.requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
start = net[0][0].weight.clone()
for _ in range(3):
    x = torch.randn(10, 6)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
print((net[0][0].weight - start).abs().max().item())
