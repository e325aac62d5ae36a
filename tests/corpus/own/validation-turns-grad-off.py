# /// case
# category = "mode"
# kind = "grad-mode-left-off"
# severity = "warning"
# names = ["evaluate"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def evaluate(data):
    torch.set_grad_enabled(False)  #- here
    return net(data).mean().item()  #-
#+     with torch.no_grad():
#+         return net(data).mean().item()


for epoch in range(2):
    x = torch.randn(8, 3)
    loss = net(x).pow(2).mean()  #! also
    opt.zero_grad()
    if loss.requires_grad:
        loss.backward()
        opt.step()
    print(epoch, evaluate(x))
torch.set_grad_enabled(True)
