# /// case
# category = "wiring"
# kind = "module-not-registered"
# severity = "warning"
# names = ["heads"]
# ///
#-
import torch
from torch import nn


class Multi(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(6, 10), nn.ELU())
        self.heads = tuple(nn.Linear(10, 1) for _ in range(tasks))  #- here
#+         self.heads = nn.ModuleList(nn.Linear(10, 1) for _ in range(tasks))

    def forward(self, x):
        h = self.shared(x)
        return torch.cat([head(h) for head in self.heads], dim=-1)


torch.manual_seed(0)
multi = Multi(3)
opt = torch.optim.Adam(multi.parameters(), lr=3e-3)  #! also
for _ in range(5):
    x = torch.randn(12, 6)
    loss = nn.functional.mse_loss(multi(x), x[:, :3])
    opt.zero_grad(), loss.backward(), opt.step()
