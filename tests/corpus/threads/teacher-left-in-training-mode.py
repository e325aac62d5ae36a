# /// case
# title = "The distillation teacher keeps its dropout"
# category = "evaluation"
# kind = "evaluating-in-train-mode"
# kinds_also_ok = ["teacher-in-train-mode"]
# severity = "warning"
# names = ["teacher"]
# symptom = "the teacher gives other targets for the same input"
# symptom_check = "teacher.training and not torch.equal(teacher(x), teacher(x))"
# cause = "teacher.eval() is missing"
# fix = "teacher.eval()"
# evidence = [
#     { url = "https://github.com/yxuansu/TaCL/issues/11", title = "Is there a bug with the teacher model?" },
#     { url = "https://github.com/vrvlive/knowlege-distillation/issues/2", title = "teacher.eval() when performing distillation" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)


def make(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, 4))


teacher, student = make(64), make(16)
pre = torch.optim.Adam(teacher.parameters(), lr=1e-2)
for _ in range(10):
    x = torch.randn(32, 8)
    pre.zero_grad()
    F.cross_entropy(teacher(x), x[:, :4].argmax(1)).backward()
    pre.step()
#+ teacher.eval()
opt = torch.optim.Adam(student.parameters(), lr=1e-2)
T = 3.0
for _ in range(20):
    x = torch.randn(32, 8)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / T, dim=1)  #! here
    loss = F.kl_div(F.log_softmax(student(x) / T, dim=1), soft, reduction="batchmean") * T * T
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
