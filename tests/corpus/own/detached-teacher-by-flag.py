# /// case
# category = "leaf"
# kind = "flag-change-on-non-leaf"
# severity = "error"
# names = ["target", "soft"]
# ///
#-
import torch
import torch.nn.functional as F
from torch import nn


def distil(student, teacher, batches, temperature=2.0):
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05)
    for x in batches:
        soft = F.softmax(teacher(x) / temperature, dim=-1)
        soft.requires_grad = False  #- here
#+         soft = soft.detach()
        loss = F.kl_div(F.log_softmax(student(x) / temperature, dim=-1), soft, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(0)
print(distil(nn.Linear(5, 3), nn.Linear(5, 3), torch.randn(3, 8, 5)))
