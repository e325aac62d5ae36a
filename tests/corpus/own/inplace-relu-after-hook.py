# /// case
# category = "inplace"
# kind = "inplace-on-hooked-output"
# severity = "error"
# names = ["backbone", "net"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 1))  #- here
#+ net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
seen = []
net[0].register_full_backward_hook(lambda module, gin, gout: seen.append(gout[0].norm()))  #! also
net(torch.randn(3, 4, requires_grad=True)).sum().backward()  #! also
print(len(seen))
