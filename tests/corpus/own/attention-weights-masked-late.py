# /// case
# category = "inplace"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["weights"]
# ///
#-
import math

import torch
from torch import nn


class Pool(nn.Module):
    """Attention pooling over a padded set."""

    def __init__(self, width):
        super().__init__()
        self.query = nn.Parameter(torch.randn(width) / math.sqrt(width))
        self.value = nn.Linear(width, width)

    def forward(self, items, valid):
        weights = torch.einsum("bnd,d->bn", items, self.query).softmax(dim=-1)
        weights *= valid  #- here
#+         weights = weights * valid
        return torch.einsum("bn,bnd->bd", weights, self.value(items))


torch.manual_seed(7)
pool = Pool(6)
opt = torch.optim.AdamW(pool.parameters(), lr=1e-3)
items, valid = torch.randn(4, 5, 6), torch.ones(4, 5)
valid[:, 3:] = 0
target = torch.randn(4, 6)
for _ in range(3):
    opt.zero_grad()
    (pool(items, valid) - target).pow(2).mean().backward()  #! also
    opt.step()
