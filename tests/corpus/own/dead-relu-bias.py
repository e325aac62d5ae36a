# /// case
# category = "gradient"
# kind = "dead-activation"
# severity = "warning"
# names = ["hidden", "relu"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(6, 12), nn.Linear(12, 1)
with torch.no_grad():
    first.bias.fill_(-50.0)  #- here
#+     first.bias.fill_(0.0)
opt = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for _ in range(5):
    x = torch.randn(32, 6)
    hidden = torch.relu(first(x))  #! also
    loss = (second(hidden).squeeze(1) - x[:, 0]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
