# /// case
# title = "A column of exp()'s result is overwritten by index assignment"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["scale"]
# difficulty = "medium"
# symptom = "RuntimeError: ... modified by an inplace operation ... ExpBackward0"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "exp saves its output; scale[:, 0] = 1 changes it"
# fix = "build with torch.cat / torch.where"
# evidence = [
#     { url = "https://www.yongfengli.tk/2018/04/13/inplace-operation-in-pytorch.html" },
#     { url = "https://github.com/pytorch/pytorch/issues/15506" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(27)
head = nn.Linear(9, 4)
x = torch.randn(15, 9)
y = torch.randn(15, 4)
opt = torch.optim.Adam(head.parameters(), lr=1e-2)
for i in range(3):
    scale = torch.exp(0.1 * head(x))
    scale[:, 0] = 1.0  #- here
#+     scale = torch.cat([torch.ones_like(scale[:, :1]), scale[:, 1:]], dim=1)
    nll = (y.pow(2) / scale + scale.log()).mean()
    opt.zero_grad()
    nll.backward()  #! also
    opt.step()
print(nll.item())
