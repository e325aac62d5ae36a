# /// case
# title = "Student and teacher change places in kl_div"
# category = "uncovered"
# kind = "kl-arguments-swapped"
# kinds_also_ok = ["kl-div-without-log"]
# severity = "warning"
# names = ["kl_div"]
# symptom = "the term is not KL(teacher || student)"
# symptom_check = "not torch.allclose(kd, wanted, atol=1e-6)"
# cause = "the first argument is the teacher's log-probability"
# fix = "swap them"
# evidence = [
#     { url = "https://github.com/paiml/aprender/pull/2153", title = "fix(distill): KD loss used reverse KL(student||teacher) instead of forward KL (PMAT-868)" },
#     { url = "https://github.com/jongwooko/distillm/issues/7", title = "incorrect loss functions based on KLD definition" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 6)).eval().requires_grad_(False)
student = nn.Linear(8, 6)
opt = torch.optim.Adam(student.parameters(), lr=5e-3)


def kd_loss(student_logits, teacher_logits, t=2.0):
    log_q = F.log_softmax(student_logits / t, dim=-1)
    log_p = F.log_softmax(teacher_logits / t, dim=-1)
    return F.kl_div(log_p, log_q.exp(), reduction="batchmean") * t * t  #- here
#+     return F.kl_div(log_q, log_p.exp(), reduction="batchmean") * t * t


for _ in range(8):
    x = torch.randn(16, 8)
    s, w = student(x), teacher(x)
    kd = kd_loss(s, w)  #! also
    p, q = F.softmax(w / 2, -1), F.softmax(s / 2, -1)
    wanted = 4 * (p * (p / q).log()).sum(1).mean()
    opt.zero_grad()
    kd.backward()
    opt.step()
