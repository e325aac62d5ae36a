# /// case
# category = "training"
# kind = "bce-on-logits"
# severity = "error"
# names = ["logits"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
logits = net(torch.randn(10, 4) * 3)  #! also
loss = nn.functional.binary_cross_entropy(logits, torch.ones(10, 1))  #- here
#+ loss = nn.functional.binary_cross_entropy_with_logits(logits, torch.ones(10, 1))
loss.backward()
print(loss.item())
