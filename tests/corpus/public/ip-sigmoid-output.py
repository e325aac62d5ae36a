# /// case
# title = "The output of sigmoid (saved for backward) is changed in place"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["gate"]
# difficulty = "easy"
# symptom = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "sigmoid saves its output; mul_ overwrites it"
# fix = "gate = gate * mask"
# evidence = [
#     { url = "https://taourl.com/read-2213901.html" },
#     { url = "https://github.com/pytorch/pytorch/issues/6990" },
# ]
# ///
import torch
import torch.nn as nn


class Gated(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.value = nn.Linear(d, d)
        self.gate = nn.Linear(d, d)

    def forward(self, x, mask):
        gate = torch.sigmoid(self.gate(x))
        gate.mul_(mask)  #- here
#+         gate = gate * mask
        return gate * self.value(x)


torch.manual_seed(6)
blk = Gated(5)
inp, keep = torch.randn(13, 5), (torch.rand(13, 5) > 0.2).float()
out = blk(inp, keep)
out.pow(2).mean().backward()  #! also
print(blk.gate.weight.grad.abs().sum())
