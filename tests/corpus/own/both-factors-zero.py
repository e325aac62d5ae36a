# /// case
# category = "gradient"
# kind = "zero-product"
# severity = "warning"
# names = ["down", "up"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Adapter(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.down = nn.Parameter(torch.zeros(width, rank))  #- here
#+         self.down = nn.Parameter(torch.randn(width, rank) * 0.1)
        self.up = nn.Parameter(torch.zeros(rank, width))

    def forward(self, x):
        return x + x @ self.down @ self.up  #! also


adapter = Adapter(6, 2)
opt = torch.optim.Adam(adapter.parameters(), lr=1e-2)
for _ in range(4):
    x = torch.randn(10, 6)
    opt.zero_grad()
    (adapter(x) - 2 * x).pow(2).mean().backward()
    opt.step()
    print(adapter.up.grad.norm().item())
