# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["lengths", "sqrt", "norm"]
# ///
#-
import torch
from torch import nn


def lengths(rows):
    return torch.sqrt((rows * rows).sum(dim=-1))  #- here
#+     return torch.sqrt((rows * rows).sum(dim=-1) + 1e-12)


class Sphere(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(3, 3, bias=False)

    def forward(self, x):
        return lengths(self.map(x))


torch.manual_seed(0)
sphere = Sphere()
opt = torch.optim.SGD(sphere.parameters(), lr=0.01)
for _ in range(3):
    x = torch.randn(8, 3)
    x[0] = 0
    loss = (sphere(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
