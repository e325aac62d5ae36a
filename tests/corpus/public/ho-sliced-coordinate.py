# /// case
# title = "PINN: the time column is sliced after the forward pass and used as grad input"
# category = "higher-order"
# kind = "grad-wrt-unused-input"
# severity = "error"
# names = ["t"]
# difficulty = "medium"
# symptom = "RuntimeError: One of the differentiated Tensors appears to not have been used in the graph"
# raises = "RuntimeError"
# raises_message = "appears to not have been used in the graph"
# cause = "the slice is a new tensor that u does not depend on"
# fix = "slice first and cat, or differentiate w.r.t. X and slice the gradient"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/95132" },
#     { url = "https://github.com/pnnl/neuromancer/issues/154" },
#     { url = "https://github.com/pytorch/pytorch/issues/20663" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(11)
pinn = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 1))
opt = torch.optim.Adam(pinn.parameters(), lr=1e-3)
for it in range(3):
    X = torch.rand(40, 2, requires_grad=True)
    u = pinn(X)
    t = X[:, 1:2]  #- also
    u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]  #- here
#+     u_t = torch.autograd.grad(u.sum(), X, create_graph=True)[0][:, 1:2]
    residual = (u_t + u).pow(2).mean()
    opt.zero_grad()
    residual.backward()
    opt.step()
print(residual.item())
