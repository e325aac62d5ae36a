# /// case
# category = "inplace"
# kind = "out-argument-on-tracked"
# severity = "error"
# names = ["buffer", "layer"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 4)
buffer = torch.empty(5, 4)
x = torch.randn(5, 4)
torch.mm(x, layer.weight, out=buffer)  #- here
#+ buffer = torch.mm(x, layer.weight)
print(buffer.sum())
