# /// case
# category = "gradient"
# kind = "hook-changes-size"
# severity = "error"
# names = ["squash", "flat"]
# ///
#-
import torch

torch.manual_seed(0)
w = torch.randn(2, 3, requires_grad=True)
flat = []


def squash(grad):
    flat.append(grad.flatten())
    return grad.flatten()  #- here
#+     return None


w.register_hook(squash)
(w * 2).sum().backward()  #! also
print(w.grad)
