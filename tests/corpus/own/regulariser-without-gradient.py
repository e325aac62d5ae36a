# /// case
# category = "training"
# kind = "constant-loss-term"
# severity = "warning"
# names = ["penalty", "l2"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 9, 6):
    data_term = nn.functional.cross_entropy(net(x), torch.randint(0, 2, (9,)))
    penalty = sum(p.detach().pow(2).sum() for p in net.parameters())  #- here
#+     penalty = sum(p.pow(2).sum() for p in net.parameters())
    loss = data_term + 1e-2 * penalty  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
