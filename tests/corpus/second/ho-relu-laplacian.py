# /// case
# title = "PINN with ReLU: the second derivative is exactly zero"
# category = "higher-order"
# kind = "zero-second-derivative"
# severity = "warning"
# names = ["u_xx"]
# difficulty = "hard"
# symptom = "silent: u_xx is zero everywhere, the PDE term does not train the network"
# symptom_check = "bool((u_xx == 0).all())"
# cause = "ReLU networks are piecewise linear"
# fix = "smooth activation (tanh, sin, softplus)"
# evidence = [
#     { url = "https://github.com/lululxvi/deepxde/issues/80" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(3)
ACT = nn.ReLU  #- here
#+ ACT = nn.Tanh
field = nn.Sequential(nn.Linear(1, 24), ACT(), nn.Linear(24, 24), ACT(), nn.Linear(24, 1))
opt = torch.optim.Adam(field.parameters(), lr=1e-3)


def diff(f, x):
    return torch.autograd.grad(f, x, torch.ones_like(f), create_graph=True)[0]


for it in range(5):
    x = torch.rand(50, 1, requires_grad=True)
    u = field(x)
    u_x = diff(u, x)
    u_xx = diff(u_x, x)  #! also
    pde = (u_xx + torch.sin(x)).pow(2).mean()
    edge = field(torch.tensor([[0.0], [1.0]])).pow(2).mean()
    opt.zero_grad()
    (pde + edge).backward()
    opt.step()
print(pde.item())
