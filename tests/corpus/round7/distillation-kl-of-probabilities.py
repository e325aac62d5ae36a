# /// case
# title = "kl_div gets the student's probabilities instead of their logarithm"
# category = "loss"
# kind = "kl-div-missing-log"
# kinds_also_ok = ["missing-log", "wrong-loss-operand"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["kl_div", "softmax", "student"]
# symptom = "the divergence is negative"
# symptom_check = "kd.item() < 0"
# cause = "the first argument of kl_div must be log-probabilities"
# fix = "log_softmax"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def distillation_loss(student_logits, teacher_logits, labels, T=3.0, alpha=0.7):
    soft_targets = F.softmax(teacher_logits / T, dim=-1)
    soft_preds = F.softmax(student_logits / T, dim=-1)  #- here
#+     soft_preds = F.log_softmax(student_logits / T, dim=-1)
    kd = F.kl_div(soft_preds, soft_targets, reduction="batchmean") * T * T  #! also
    ce = F.cross_entropy(student_logits, labels)
    return alpha * kd + (1 - alpha) * ce, kd


def net(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 5))


torch.manual_seed(74)
x = torch.randn(100, 8)
labels = x[:, :5].argmax(dim=1)
teacher, student = net(64), net(8)
opt = torch.optim.Adam(teacher.parameters(), lr=1e-2)
for _ in range(15):
    opt.zero_grad()
    F.cross_entropy(teacher(x), labels).backward()
    opt.step()

teacher.eval().requires_grad_(False)
opt = torch.optim.Adam(student.parameters(), lr=1e-2)
for epoch in range(3):
    for rows in torch.randperm(100).split(25):
        loss, kd = distillation_loss(student(x[rows]), teacher(x[rows]), labels[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), kd.item())
