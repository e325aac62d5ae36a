# /// case
# category = "wiring"
# kind = "learning-rate-zero"
# severity = "warning"
# names = ["schedule", "opt"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: step // 1000)  #- here
#+ schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: (step + 1) / 1000)
for x in torch.randn(5, 8, 4):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()  #! also
    schedule.step()
print(net.weight)
