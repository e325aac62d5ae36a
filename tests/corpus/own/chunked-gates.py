# /// case
# category = "inplace"
# kind = "inplace-on-multi-view"
# severity = "error"
# names = ["i", "gates"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
project = nn.Linear(3, 8)
i, f = project(torch.randn(2, 3)).chunk(2, dim=1)  #! also
i.sigmoid_()  #- here
#+ i = i.sigmoid()
print((i * f).sum())
