# /// case
# title = "register_full_backward_hook on a layer followed by an in-place ReLU"
# category = "hooks"
# kind = "backward-hook-with-inplace"
# severity = "error"
# names = ["net"]
# difficulty = "medium"
# symptom = "RuntimeError: Output 0 of BackwardHookFunctionBackward is a view and is being modified inplace"
# raises = "RuntimeError"
# raises_message = "is a view and is being modified inplace"
# cause = "module backward hooks wrap outputs in views"
# fix = "ReLU(inplace=False) or a tensor hook"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/61519" },
#     { url = "https://github.com/f-dangel/singd/issues/56" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(
    nn.Conv2d(1, 3, 3),
    nn.ReLU(inplace=True),  #- here
#+     nn.ReLU(),
    nn.Flatten(),
    nn.Linear(3 * 16, 2),
)
norms = []
net[0].register_full_backward_hook(lambda m, gi, go: norms.append(go[0].norm().item()))  #! also
img = torch.randn(2, 1, 6, 6, requires_grad=True)
out = net(img)  #! here
nn.functional.cross_entropy(out, torch.tensor([0, 1])).backward()
print(norms)
