# /// case
# category = "numeric"
# kind = "nonfinite-gradient-masked-branch"
# severity = "warning"
# names = ["safe", "ratio"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
alpha = nn.Parameter(torch.tensor(0.5))
opt = torch.optim.SGD([alpha], lr=0.01)
u = torch.tensor([-1.0, 0.0, 2.0, 5.0])
for _ in range(2):
    ratio = torch.where(u > 0, (alpha * u).sqrt(), torch.zeros_like(u))  #- here
#+     ratio = torch.where(u > 0, (alpha * u.clamp(min=1e-6)).sqrt(), torch.zeros_like(u))
    loss = (ratio - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(alpha.item())
