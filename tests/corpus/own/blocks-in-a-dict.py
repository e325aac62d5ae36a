# /// case
# category = "wiring"
# kind = "module-not-registered"
# severity = "warning"
# names = ["branches", "dict", "ModuleDict"]
# ///
#-
import torch
from torch import nn


class MultiScale(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.branches = {f"s{s}": nn.Sequential(nn.AvgPool1d(s), nn.Flatten(), nn.Linear(16 // s, 4)) for s in scales}  #- here
#+         self.branches = nn.ModuleDict({f"s{s}": nn.Sequential(nn.AvgPool1d(s), nn.Flatten(), nn.Linear(16 // s, 4)) for s in scales})
        self.mix = nn.Linear(4 * len(scales), 2)

    def forward(self, x):
        return self.mix(torch.cat([branch(x) for branch in self.branches.values()], dim=1))


torch.manual_seed(0)
model = MultiScale((1, 2, 4))
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(4):
    x = torch.randn(8, 1, 16)
    loss = nn.functional.cross_entropy(model(x), (x.mean((1, 2)) > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
