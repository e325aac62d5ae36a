# /// case
# category = "inplace"
# kind = "saved-changed-unseen"
# severity = "warning"
# names = ["gain"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
gain = nn.Parameter(torch.full((3,), 2.0))
shift = nn.Parameter(torch.zeros(3))
opt = torch.optim.SGD([gain, shift], lr=0.1)
for x in torch.randn(3, 8, 3):
    out = x * gain + shift
    loss = (out * gain).pow(2).mean()
    gain.data.clamp_(max=1.0)  #- here
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
#+     gain.data.clamp_(max=1.0)
    print(loss.item(), gain.grad.norm().item())
    gain.data.fill_(2.0)
