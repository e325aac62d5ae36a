# /// case
# category = "graph"
# kind = "graph-carried-across-steps"
# severity = "error"
# names = ["hidden", "detach", "state"]
# ///
#-
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 8)
        self.out = nn.Linear(8, 1)
        self.hidden = None

    def forward(self, x):
        if self.hidden is None:
            self.hidden = torch.zeros(len(x), 8)
        self.hidden = self.cell(x, self.hidden)  #- here
#+         self.hidden = self.cell(x, self.hidden.detach())
        return self.out(self.hidden)


torch.manual_seed(0)
reader = Reader()
opt = torch.optim.SGD(reader.parameters(), lr=0.1)
for x in torch.randn(5, 4, 3):
    loss = reader(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
