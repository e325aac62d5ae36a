# /// case
# title = "The learnable scale is cast after it was wrapped"
# category = "leaf"
# kind = "non-leaf-parameter"
# kinds_also_ok = ["parameter-not-registered", "parameter-not-in-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["log_scale", "double"]
# symptom = "log_scale is no leaf, no parameter of the module, and never trained"
# symptom_check = "not model.log_scale.is_leaf"
# cause = ".double() of a Parameter gives a plain tensor"
# fix = "cast first, then wrap"
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoTower(nn.Module):
    def __init__(self, left, right, dim=6):
        super().__init__()
        self.left = nn.Linear(left, dim, bias=False).double()
        self.right = nn.Linear(right, dim, bias=False).double()
        self.log_scale = nn.Parameter(torch.tensor(math.log(5.0))).double()  #- here
#+         self.log_scale = nn.Parameter(torch.tensor(math.log(5.0)).double())

    def forward(self, a, b):
        u = F.normalize(self.left(a), dim=1)
        v = F.normalize(self.right(b), dim=1)
        return self.log_scale.exp() * u @ v.T  #! also


def contrastive(similarity):
    target = torch.arange(len(similarity))
    return (F.cross_entropy(similarity, target) + F.cross_entropy(similarity.T, target)) / 2


torch.manual_seed(42)
source = torch.randn(48, 4, dtype=torch.float64)
a = source @ torch.randn(4, 9, dtype=torch.float64)
b = source @ torch.randn(4, 7, dtype=torch.float64)
model = TwoTower(9, 7)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  #! also
for epoch in range(4):
    for rows in torch.randperm(48).split(16):
        loss = contrastive(model(a[rows], b[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), model.log_scale.exp().item())
