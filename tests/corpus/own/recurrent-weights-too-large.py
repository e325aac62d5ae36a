# /// case
# category = "numeric"
# kind = "exploding-gradient"
# severity = "warning"
# names = ["recurrent", "W"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
recurrent = nn.Linear(8, 8, bias=False)
with torch.no_grad():
    recurrent.weight.copy_(torch.eye(8) * 3.0 + torch.randn(8, 8) * 0.3)  #! also
readout = nn.Linear(8, 1)
opt = torch.optim.SGD([*recurrent.parameters(), *readout.parameters()], lr=1e-12)
for x in torch.randn(5, 4, 8):
    h = x
    for _ in range(14):
        h = recurrent(h)  #- here
#+         h = torch.tanh(recurrent(h))
    loss = readout(h).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    print(recurrent.weight.grad.norm().item())
