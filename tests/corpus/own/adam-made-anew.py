# /// case
# category = "wiring"
# kind = "optimizer-rebuilt-each-step"
# severity = "warning"
# names = ["optimizer", "adam"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(8, 1)
#+ adam = torch.optim.Adam(net.parameters())


def update(net, x, y, lr):
    adam = torch.optim.Adam(net.parameters(), lr=lr)  #- here
#+     for group in adam.param_groups:
#+         group["lr"] = lr
    loss = (net(x).squeeze(1) - y).abs().mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    return loss.item()


for step in range(5):
    x = torch.randn(16, 8)
    print(update(net, x, x.sum(1), 1e-2 / (step + 1)))
