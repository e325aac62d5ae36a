# /// case
# title = "A batch in which one task has no label gives NaN"
# category = "uncovered"
# kind = "all-targets-ignored"
# kinds_also_ok = ["nonfinite-gradient"]
# severity = "warning"
# names = ["cross_entropy", "ignore_index"]
# symptom = "the total is NaN in that batch, and so is every mean over the epoch"
# symptom_check = "any(t != t for t in totals)"
# cause = "the mean over no target is 0/0"
# fix = "sum over targets divided by a count of at least one"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/70348", title = "nan return by nn.CrossEntropyLoss when all the labels are ignore_index in torch 1.11" },
#     { url = "https://github.com/pytorch/pytorch/issues/116349", title = "CrossEntropyLoss(reduction='mean'), when all the element of the label is ignore_index=-100, unexpected output : nan" },
# ]
# ///
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)
trunk = nn.Linear(6, 8)
shape_head, colour_head = nn.Linear(8, 3), nn.Linear(8, 4)
heads = nn.ModuleList([trunk, shape_head, colour_head])
opt = torch.optim.SGD(heads.parameters(), lr=0.1)
totals = []


def task_loss(logits, labels):
    return F.cross_entropy(logits, labels, ignore_index=-1)  #- here
#+     return F.cross_entropy(logits, labels, ignore_index=-1, reduction="sum") / (labels >= 0).sum().clamp_min(1)


for step in range(6):
    x = torch.randn(8, 6)
    shape = torch.randint(0, 3, (8,))
    colour = torch.randint(0, 4, (8,)) if step != 3 else torch.full((8,), -1)  #! also
    h = torch.relu(trunk(x))
    total = task_loss(shape_head(h), shape) + task_loss(colour_head(h), colour)
    opt.zero_grad()
    total.backward()  #! also
    opt.step()
    totals.append(total.item())
print(sum(totals) / len(totals))
