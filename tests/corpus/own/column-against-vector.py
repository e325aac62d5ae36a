# /// case
# category = "training"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["prediction", "target"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
value = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(value.parameters(), lr=1e-2)
for _ in range(3):
    states, returns = torch.randn(25, 3), torch.randn(25)
    prediction = value(states)  #-
#+     prediction = value(states).squeeze(-1)
    loss = ((prediction - returns) ** 2).mean()  #! here
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
