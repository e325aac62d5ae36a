# /// case
# category = "wiring"
# kind = "unscale-twice"
# severity = "error"
# names = ["scaler"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")


def gradient_norm():
    scaler.unscale_(opt)  #! here
    return nn.utils.clip_grad_norm_(net.parameters(), 1.0)


scaler.scale(net(torch.randn(6, 4)).pow(2).mean()).backward()
scaler.unscale_(opt)  #- also
print(gradient_norm())  #! also
scaler.step(opt)
scaler.update()
