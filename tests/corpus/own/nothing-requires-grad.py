# /// case
# category = "graph"
# kind = "root-without-history"
# severity = "error"
# names = ["loss", "w"]
# ///
#-
import torch

torch.manual_seed(0)
w, b = torch.randn(3), torch.zeros(1)  #- also
#+ w, b = torch.randn(3, requires_grad=True), torch.zeros(1, requires_grad=True)
X, y = torch.randn(20, 3), torch.randn(20)
for _ in range(2):
    loss = ((X @ w + b - y) ** 2).mean()
    loss.backward()  #! here
