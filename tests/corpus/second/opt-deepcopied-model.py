# /// case
# title = "The model is deep-copied after the optimizer was built; the copy is trained"
# category = "optimizer-wiring"
# kind = "optimizer-holds-other-model"
# severity = "warning"
# names = ["student", "optimizer"]
# difficulty = "medium"
# symptom = "silent: the trained copy never changes"
# symptom_check = "all(torch.equal(a, b) for a, b in zip(init, student.parameters()))"
# cause = "deepcopy makes new Parameters; the optimizer still has the originals"
# fix = "build the optimizer from the copy"
# evidence = [
#     { url = "https://github.com/skorch-dev/skorch/issues/317" },
#     { url = "https://github.com/pytorch/pytorch/issues/14467" },
# ]
# ///
import copy

import torch
from torch import nn

torch.manual_seed(5)
teacher = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 4))
optimizer = torch.optim.AdamW(teacher.parameters(), lr=1e-2)  #- here
student = copy.deepcopy(teacher)  #! also
for p in student.parameters():
    nn.init.normal_(p, std=0.2)
#+ optimizer = torch.optim.AdamW(student.parameters(), lr=1e-2)
#+ teacher.requires_grad_(False)
init = [p.detach().clone() for p in student.parameters()]
kl = nn.KLDivLoss(reduction="batchmean")
for step in range(15):
    x = torch.randn(25, 6)
    with torch.no_grad():
        target = teacher(x).softmax(-1)
    loss = kl(student(x).log_softmax(-1), target)
    student.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
