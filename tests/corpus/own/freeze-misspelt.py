# /// case
# category = "leaf"
# kind = "freeze-without-effect"
# severity = "warning"
# names = ["parameter", "p"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
teacher_like = nn.Linear(4, 4)
student = nn.Linear(4, 4)
for parameter in teacher_like.parameters():
    parameter.require_grad = False  #- here
#+     parameter.requires_grad = False
both = [*teacher_like.parameters(), *student.parameters()]
opt = torch.optim.AdamW(both, lr=1e-2)
for _ in range(3):
    opt.zero_grad()
    x = torch.randn(16, 4)
    gap = (student(x) - teacher_like(x)).pow(2).mean()
    gap.backward()
    opt.step()
    print(gap.item())
