# /// case
# category = "mode"
# kind = "graph-break-item"
# severity = "warning"
# names = ["penalty", "scale"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(5, 5)
log_scale = nn.Parameter(torch.zeros(()))
opt = torch.optim.SGD([*net.parameters(), log_scale], lr=0.1)
for _ in range(3):
    error = (net(torch.randn(9, 5)) - 1).pow(2).mean()
    precision = torch.exp(-log_scale).item()  #- here
#+     precision = torch.exp(-log_scale)
    loss = precision * error
    opt.zero_grad()
    loss.backward()
    opt.step()
print(log_scale.item(), log_scale.grad)
