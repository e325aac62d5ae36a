# /// case
# category = "inplace"
# kind = "inplace-on-leaf"
# severity = "error"
# names = ["weight", "theta"]
# ///
#-
import torch

torch.manual_seed(0)
theta = torch.zeros(4, 4, requires_grad=True)
theta += torch.eye(4)  #- here
#+ with torch.no_grad():
#+     theta += torch.eye(4)
print((theta @ torch.ones(4)).sum())
