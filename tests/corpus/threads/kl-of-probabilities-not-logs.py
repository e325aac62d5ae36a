# /// case
# title = "kl_div gets the student's probabilities"
# category = "uncovered"
# kind = "kl-div-without-log"
# kinds_also_ok = ["kl-input-not-log"]
# severity = "warning"
# names = ["kl_div", "student"]
# symptom = "the divergence is negative"
# symptom_check = "float(divergence.detach()) < 0"
# cause = "softmax instead of log_softmax"
# fix = "log_softmax"
# evidence = [
#     { url = "https://github.com/microsoft/ProDA/issues/20", title = "question about the loss formulation of kl_div" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
teacher_net, student_net = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1)
teacher_net.requires_grad_(False)
opt = torch.optim.SGD(student_net.parameters(), lr=0.1)


def distil(images):
    with torch.no_grad():
        teacher = F.softmax(teacher_net(images), dim=1)
    student = F.softmax(student_net(images), dim=1)  #- here
#+     student = F.log_softmax(student_net(images), dim=1)
    return F.kl_div(student, teacher, reduction="batchmean") / images[0, 0].numel()  #! here


for _ in range(6):
    divergence = distil(torch.rand(2, 3, 8, 8))
    opt.zero_grad()
    divergence.backward()
    opt.step()
    print(divergence.item())
