# /// case
# category = "wiring"
# kind = "unscaled-loss-with-scaler"
# severity = "warning"
# names = ["loss", "scaler"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
scaler.scale(torch.zeros(()))
for x in torch.randn(4, 10, 4):
    loss = (net(x).squeeze(1) - x[:, 0]).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #- here
#+     scaler.scale(loss).backward()
    scaler.step(opt)  #! also
    scaler.update()
    print(loss.item())
