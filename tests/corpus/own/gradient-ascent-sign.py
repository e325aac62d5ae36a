# /// case
# category = "numeric"
# kind = "divergence"
# severity = "warning"
# names = ["optimizer", "opt", "loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1.2, momentum=0.9)  #- here
#+ optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
for x in torch.randn(40, 16, 4):
    target = x.sum(1, keepdim=True)
    loss = (net(x) - target).pow(2).sum()  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #! also
print(loss.item())
