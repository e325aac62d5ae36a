# /// case
# category = "gradient"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["W", "b"]
# ///
#-
import torch

torch.manual_seed(0)
W = torch.randn(3, 2, requires_grad=True)
b = torch.zeros(2, requires_grad=True)
X = torch.randn(60, 3)
Y = torch.stack([X[:, 0] - X[:, 1], X[:, 2]], 1)
for start in range(0, 60, 12):
    xb, yb = X[start : start + 12], Y[start : start + 12]
    error = (xb @ W + b - yb).pow(2).mean()
    error.backward()  #! here
    with torch.no_grad():
        for parameter in (W, b):
            parameter -= 0.05 * parameter.grad  #! also
#+             parameter.grad.zero_()
    print(error.item())
