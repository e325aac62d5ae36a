# /// case
# category = "wiring"
# kind = "clip-before-unscale"
# severity = "warning"
# names = ["clip_grad_value_", "scaler"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for x in torch.randn(4, 8, 6):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(x).float().pow(2).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
#+     scaler.unscale_(opt)
    torch.nn.utils.clip_grad_value_(net.parameters(), 0.1)  #! here
    scaler.step(opt)
    scaler.update()
    print(loss.item())
