# /// case
# title = "kl_div gets probabilities as its first argument"
# category = "loss-wiring"
# kind = "kl-input-not-log"
# severity = "warning"
# names = ["student"]
# difficulty = "hard"
# symptom = "silent: the value is not a KL divergence (negative)"
# symptom_check = "loss.item() < 0"
# cause = "kl_div expects log-probabilities for the input"
# fix = "student.log_softmax(-1)"
# evidence = [
#     { url = "https://github.com/lightly-ai/lightly/pull/1341" },
#     { url = "https://github.com/pytorch/pytorch/issues/5282" },
#     { url = "https://github.com/PolarisShi/distillation/issues/1" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(37)
big, small = nn.Linear(10, 6).requires_grad_(False), nn.Linear(10, 6)
opt = torch.optim.SGD(small.parameters(), lr=0.5)
for step in range(12):
    x = torch.randn(32, 10)
    teacher = big(x).softmax(-1)
    student = small(x).softmax(-1)  #- also
#+     student = small(x).log_softmax(-1)
    loss = F.kl_div(student, teacher, reduction="batchmean")  #! here
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
