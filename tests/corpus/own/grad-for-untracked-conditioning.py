# /// case
# category = "graph"
# kind = "grad-of-untracked-input"
# severity = "error"
# names = ["condition"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
score = nn.Sequential(nn.Linear(5, 10), nn.SiLU(), nn.Linear(10, 1))
sample = torch.randn(6, 3, requires_grad=True)
condition = torch.randn(6, 2)  #- also
#+ condition = torch.randn(6, 2, requires_grad=True)
energy = score(torch.cat([sample, condition], 1)).sum()
pull, push = torch.autograd.grad(energy, [sample, condition])  #! here
print(pull.shape, push.shape)
