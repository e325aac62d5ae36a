# /// case
# category = "mode"
# kind = "checkpoint-input-without-grad"
# severity = "warning"
# names = ["block", "blocks"]
# ///
#-
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3))
readout = nn.Linear(4, 1)
opt = torch.optim.SGD([*blocks.parameters(), *readout.parameters()], lr=0.1)
for x in torch.randn(3, 6, 4):
    for block in blocks[:1]:
        x = checkpoint(block, x, use_reentrant=True)  #- here
#+         x = checkpoint(block, x, use_reentrant=False)
    for block in blocks[1:]:
        x = block(x)
    loss = readout(x).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(blocks[0][0].weight.grad)
