# /// case
# category = "gradient"
# kind = "grad-assigned-mismatch"
# severity = "error"
# names = ["weight", "velocity"]
# ///
#-
import torch

torch.manual_seed(0)
weight = torch.randn(4, 2, requires_grad=True)
velocity = torch.zeros(4, 2, dtype=torch.float64)
optimizer = torch.optim.SGD([weight], lr=0.1)
for rows in torch.randn(3, 6, 4):
    optimizer.zero_grad()
    (rows @ weight).square().mean().backward()
    velocity = 0.9 * velocity + weight.grad
    weight.grad = velocity  #- here
#+     weight.grad = velocity.to(weight.dtype)
    optimizer.step()
print(weight.detach())
