# /// case
# category = "gradient"
# kind = "second-derivative-zero"
# severity = "warning"
# names = ["u_xx", "net"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 1))  #- here
#+ net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(3):
    x = torch.rand(30, 1, requires_grad=True)
    u = net(x)
    (u_x,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)  #! here
    residual = (u_xx + torch.sin(x)).pow(2).mean() + u_x.pow(2).mean() * 1e-3
    opt.zero_grad()
    residual.backward()
    opt.step()
    print(residual.item())
