# /// case
# category = "graph"
# kind = "graph-retained-in-container"
# severity = "warning"
# names = ["values", "loss", "Meter", "detach"]
# ///
#-
import torch
from torch import nn


class Meter:
    def __init__(self):
        self.values = {"train": []}

    def update(self, split, value):
        self.values[split].append(value)  #- here
#+         self.values[split].append(value.detach())

    def mean(self, split):
        return sum(v.item() for v in self.values[split]) / len(self.values[split])


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
meter = Meter()
for _ in range(6):
    x = torch.randn(8, 3)
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update("train", loss)  #! also
print(meter.mean("train"))
