# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["spread", "std"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 4)
opt = torch.optim.Adam(net.parameters())


def whiten(h):
    centre = h.mean(0)
    spread = h.std(0)  #- here
#+     spread = h.std(0, unbiased=False).clamp(min=1e-3)
    return (h - centre) / (spread + 1e-5)


for size in (1, 1, 1):
    out = whiten(net(torch.randn(size, 4)))
    loss = (out - 0.5).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
