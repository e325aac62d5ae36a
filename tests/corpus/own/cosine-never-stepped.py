# /// case
# category = "wiring"
# kind = "scheduler-never-stepped"
# severity = "warning"
# names = ["schedule"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)  #! here
for x in torch.randn(10, 8, 3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
#+     schedule.step()
print(schedule.get_last_lr())
