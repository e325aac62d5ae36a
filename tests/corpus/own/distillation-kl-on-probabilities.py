# /// case
# category = "training"
# kind = "kl-div-without-log"
# severity = "warning"
# names = ["student_p"]
# ///
#-
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
teacher, student = nn.Linear(6, 4).eval(), nn.Linear(6, 4)
teacher.requires_grad_(False)
opt = torch.optim.SGD(student.parameters(), lr=0.5)
for x in torch.randn(4, 16, 6):
    target = F.softmax(teacher(x) / 2, -1)
    student_p = F.softmax(student(x) / 2, -1)  #- also
#+     student_p = F.log_softmax(student(x) / 2, -1)
    loss = F.kl_div(student_p, target, reduction="batchmean") * 4  #! here
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
