# /// case
# category = "mode"
# kind = "dropout-always-on"
# severity = "warning"
# names = ["forward", "dropout"]
# ///
#-
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 10), nn.Linear(10, 1)

    def forward(self, x):
        return self.b(F.dropout(self.a(x).relu(), 0.4))  #- here
#+         return self.b(F.dropout(self.a(x).relu(), 0.4, training=self.training))


net = Reader()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net.train()
    opt.zero_grad()
    net(torch.randn(8, 5)).pow(2).mean().backward()
    opt.step()
    net.eval()
    with torch.no_grad():
        print(net(torch.ones(4, 5)).mean().item())
