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
    return F.kl_div(log_q, log_p.exp(), reduction="batchmean") * t * t


for _ in range(8):
    x = torch.randn(16, 8)
    s, w = student(x), teacher(x)
    kd = kd_loss(s, w)
    p, q = F.softmax(w / 2, -1), F.softmax(s / 2, -1)
    wanted = 4 * (p * (p / q).log()).sum(1).mean()
    opt.zero_grad()
    kd.backward()
    opt.step()
