# /// case
# category = "leaf"
# kind = "leaf-lost-by-rebinding"
# severity = "warning"
# names = ["weights", "weight"]
# ///
#-
import math

import torch

torch.manual_seed(3)
x = torch.randn(50, 4)
y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
weight = torch.zeros(4, requires_grad=True)
m, v = torch.zeros(4), torch.zeros(4)
losses = []
try:
    for t in range(1, 6):
        loss = ((x @ weight - y) ** 2).mean()
        loss.backward()
        g = weight.grad  #! also
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        update = 0.1 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
        weight = weight - update  #- here
#+         with torch.no_grad():
#+             weight -= update
#+         weight.grad = None
        losses.append(loss.item())
except (TypeError, RuntimeError) as problem:
    print("stopped:", math.nan)
print(losses)
