# /// case
# category = "graph"
# kind = "grad-output-mismatch"
# severity = "error"
# names = ["cotangent", "y"]
# ///
#-
import torch

x = torch.linspace(0, 1, 6, requires_grad=True)
y = torch.stack([x.sin(), x.cos()])
cotangent = torch.ones(6, 2)  #-
#+ cotangent = torch.ones(2, 6)
y.backward(gradient=cotangent)  #! here
print(x.grad)
