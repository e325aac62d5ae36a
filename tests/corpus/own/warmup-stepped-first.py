# /// case
# category = "wiring"
# kind = "scheduler-before-optimizer"
# severity = "warning"
# names = ["scheduler", "warmup"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
warmup = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=5)
for x in torch.randn(6, 10, 3):
    warmup.step()  #- here
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  #! also
#+     warmup.step()
print(opt.param_groups[0]["lr"])
