# /// case
# category = "leaf"
# kind = "non-leaf-deepcopied"
# severity = "error"
# names = ["state", "hidden", "self.state"]
# ///
#-
import copy

import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = nn.GRUCell(width, width)
        self.state = None

    def forward(self, x):
        if self.state is None:
            self.state = torch.zeros_like(x)
        self.state = self.cell(x, self.state)  #! here
        return self.state


torch.manual_seed(0)
net = Memory(4)
snapshots = []
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for x in torch.randn(2, 3, 4):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
#+     net.state = None
    snapshots.append(copy.deepcopy(net))  #! also
    net.state = None  #-
print(len(snapshots))
