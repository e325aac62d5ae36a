# /// case
# category = "graph"
# kind = "needless-create-graph"
# severity = "note"
# names = ["gradient"]
# ///
#-
import torch

torch.manual_seed(0)
x = torch.randn(6, requires_grad=True)
for _ in range(3):
    energy = (x**4 - x**2).sum()
    (gradient,) = torch.autograd.grad(energy, x, create_graph=True)  #- here
#+     (gradient,) = torch.autograd.grad(energy, x)
    with torch.no_grad():
        x -= 0.01 * gradient
print(energy.item())
