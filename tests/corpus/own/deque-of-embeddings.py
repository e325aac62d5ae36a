# /// case
# category = "graph"
# kind = "graph-retained-in-container"
# severity = "warning"
# names = ["bank"]
# ///
#-
from collections import deque

import torch
from torch import nn


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.Linear(16, 6))
        self.bank = deque()

    def forward(self, rows):
        z = nn.functional.normalize(self.body(rows), dim=-1)
        shifted = nn.functional.normalize(self.body(rows + 0.05 * torch.randn_like(rows)), dim=-1)
        others = [old.detach() for old in self.bank] or [torch.zeros(1, 6)]
        logits = torch.cat([(z * shifted).sum(-1, keepdim=True), z @ torch.cat(others).T], dim=1) / 0.2
        self.bank.append(shifted)  #- here
#+         self.bank.append(shifted.detach())
        return nn.functional.cross_entropy(logits, torch.zeros(len(rows), dtype=torch.long))


torch.manual_seed(2)
model = Contrast()
sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for _ in range(7):
    sgd.zero_grad()
    model(torch.randn(12, 10)).backward()
    sgd.step()
