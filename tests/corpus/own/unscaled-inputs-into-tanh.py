# /// case
# category = "numeric"
# kind = "saturated-activation"
# severity = "warning"
# names = ["features", "hidden"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(4, 16), nn.Linear(16, 1)
opt = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=1e-3)
features = torch.randn(40, 4) * 300 + 1000  #-
#+ features = torch.randn(40, 4)
target = torch.rand(40, 1)
for epoch in range(5):
    hidden = torch.tanh(first(features))  #! here
    loss = (second(hidden) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(epoch, loss.item())
