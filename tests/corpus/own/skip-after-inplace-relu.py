# /// case
# category = "inplace"
# kind = "stale-alias-read"
# severity = "warning"
# names = ["x", "skip"]
# ///
#-
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        x = self.norm(x)
        skip = x
        x = F.relu(x, inplace=True)  #- here
#+         x = F.relu(x)
        return self.fc(x) + skip  #! also


block = Block(6)
opt = torch.optim.SGD(block.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    block(torch.randn(5, 6)).pow(2).mean().backward()
    opt.step()
print(block.fc.weight.norm().item())
