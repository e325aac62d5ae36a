# /// case
# title = "Low-rank adapter with both factors zero"
# category = "vanishing-exploding"
# kind = "zero-init-no-gradient"
# severity = "warning"
# names = ["self.down", "self.up"]
# difficulty = "hard"
# symptom = "silent: both factors always get zero gradients"
# symptom_check = "bool((layer.down.grad == 0).all()) and bool((layer.up.grad == 0).all())"
# cause = "grad(up) ~ down = 0 and grad(down) ~ up = 0"
# fix = "init one factor randomly"
# evidence = [
#     { url = "https://github.com/nvidia-cosmos/cosmos-predict2.5/pull/15" },
#     { url = "https://github.com/Guitaricet/relora/issues/18" },
#     { url = "https://github.com/circle-hit/SAPT/issues/11" },
# ]
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Adapted(nn.Module):
    def __init__(self, base: nn.Linear, rank: int):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.zeros(rank, base.in_features))  #- here
#+         self.down = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.down), self.up)


torch.manual_seed(8)
layer = Adapted(nn.Linear(16, 16), rank=2)
tuned = [p for p in layer.parameters() if p.requires_grad]
opt = torch.optim.AdamW(tuned, lr=1e-2)
x = torch.randn(40, 16)
y = x.roll(1, dims=1)
for _ in range(6):
    opt.zero_grad()
    loss = F.mse_loss(layer(x), y)
    loss.backward()
    opt.step()
print(loss.item())
