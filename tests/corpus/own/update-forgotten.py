# /// case
# category = "wiring"
# kind = "scaler-update-missing"
# severity = "error"
# names = ["scaler"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters())
scaler = torch.amp.GradScaler("cpu")
for x in torch.randn(3, 5, 3):
    opt.zero_grad()
    scaler.scale(net(x).pow(2).mean()).backward()
    scaler.step(opt)  #! here
#+     scaler.update()
