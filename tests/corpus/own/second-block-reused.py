# /// case
# category = "gradient"
# kind = "parameter-never-used"
# severity = "warning"
# names = ["block2", "layer2"]
# ///
#-
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.block1 = nn.Linear(width, width)
        self.block2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = x + F.gelu(self.block1(x))
        x = x + F.gelu(self.block1(x))  #- here
#+         x = x + F.gelu(self.block2(x))
        return self.out(x).squeeze(-1)


def main():
    net = Residual(8)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for step in range(4):
        x = torch.randn(32, 8)
        loss = F.mse_loss(net(x), x.sum(-1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        print(step, loss.item())


main()
