# /// case
# title = "kl_div gets probabilities"
# category = "loss"
# kind = "kl-div-input-not-log"
# kinds_also_ok = ["wrong-loss-operand"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["kl_div", "softmax"]
# symptom = "equal distributions have a large divergence"
# symptom_check = "abs(same) > 1"
# cause = "kl_div takes log-probabilities as its input"
# fix = "log_softmax"
# evidence = [
#     { url = "https://github.com/microsoft/ProDA/issues/20", title = "question about the loss formulation of kl_div" },
#     { url = "https://github.com/pytorch/pytorch/issues/5282", title = "Possible bug in KL divergence" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(46)
T, alpha = 2.0, 0.7
teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5)).eval().requires_grad_(False)
student = nn.Linear(10, 5)


def soft_loss(student_logits, teacher_logits):
    student_prob = F.softmax(student_logits / T, dim=1)  #- here
#+     student_prob = F.log_softmax(student_logits / T, dim=1)
    teacher_prob = F.softmax(teacher_logits / T, dim=1)
    return F.kl_div(student_prob, teacher_prob, reduction="batchmean") * T ** 2  #! also


opt = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.randn(100, 10)
hard = teacher(x).argmax(1)
for epoch in range(10):
    logits = student(x)
    loss = alpha * soft_loss(logits, teacher(x)) + (1 - alpha) * F.cross_entropy(logits, hard)
    opt.zero_grad()
    loss.backward()
    opt.step()
same = soft_loss(teacher(x), teacher(x)).item()
print(loss.item(), same)
