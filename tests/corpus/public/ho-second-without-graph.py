# /// case
# title = "Second derivative asked from a first derivative computed without create_graph"
# category = "higher-order"
# kind = "missing-create-graph"
# severity = "error"
# names = ["dy"]
# difficulty = "easy"
# symptom = "RuntimeError: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "element 0 of tensors does not require grad"
# cause = "the first grad has no history"
# fix = "create_graph=True on the first call"
# evidence = [
#     { url = "https://github.com/dragen1860/Deep-Learning-with-PyTorch-Tutorials/issues/6" },
#     { url = "https://github.com/caogang/wgan-gp/issues/4" },
# ]
# ///
import torch
from torch.autograd import grad

x = torch.linspace(0.1, 2.0, 12, requires_grad=True)
y = torch.sin(x) * x**2
dy = grad(y.sum(), x)[0]  #- here
#+ dy = grad(y.sum(), x, create_graph=True)[0]
d2y = grad(dy.sum(), x)[0]  #! also
print(d2y)
