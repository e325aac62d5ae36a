# /// case
# category = "graph"
# kind = "grad-wrt-unused-input"
# severity = "error"
# names = ["grid", "x"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
xs = torch.rand(10, requires_grad=True)
ts = torch.rand(10, requires_grad=True)
grid = torch.stack([xs, ts], 1)
u = net(grid)
x_column = grid[:, 0]
(u_x,) = torch.autograd.grad(u.sum(), x_column)  #- here
#+ (u_x,) = torch.autograd.grad(u.sum(), xs)
print(u_x)
