# /// case
# title = "Learnable PDE coefficient loses its Parameter status through .double()"
# category = "leaf-nonleaf"
# kind = "unregistered-parameters"
# kinds_also_ok = ["parameters-not-in-optimizer", "grad-read-on-nonleaf"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["nu"]
# difficulty = "hard"
# symptom = "the diffusion coefficient keeps its initial value while the loss falls"
# symptom_check = "\"nu\" not in dict(problem.named_parameters())"
# cause = ".double() on the float32 Parameter returns a new non-leaf tensor; the module stores a plain tensor, parameters() does not list it"
# fix = "create the Parameter in the wanted dtype"
# evidence = [{ url = "https://discuss.pytorch.org/t/how-to-define-a-leaf-tensor-in-pytorch-0-4-1/28461" }, { url = "https://discuss.pytorch.org/t/requires-grad-propagation/93792" }]
# ///
"""Inverse PINN: recover the diffusion coefficient of u_t = nu * u_xx from scattered data."""
import math

import torch
from torch import nn

torch.manual_seed(0)
TRUE_NU = 0.12


class HeatProblem(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.Tanh(),
            nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, 1),
        ).double()
        self.nu = nn.Parameter(torch.tensor(0.5)).double()  #- here
#+         self.nu = nn.Parameter(torch.tensor(0.5, dtype=torch.float64))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))

    def residual(self, x, t):
        u = self(x, t)
        ones = torch.ones_like(u)
        u_t, = torch.autograd.grad(u, t, ones, create_graph=True)
        u_x, = torch.autograd.grad(u, x, ones, create_graph=True)
        u_xx, = torch.autograd.grad(u_x, x, ones, create_graph=True)
        return u_t - self.nu * u_xx


def exact(x, t):
    return torch.exp(-TRUE_NU * math.pi ** 2 * t) * torch.sin(math.pi * x)


problem = HeatProblem()
opt = torch.optim.Adam(problem.parameters(), lr=5e-3)  #! also

x_data = torch.rand(80, 1, dtype=torch.float64)
t_data = torch.rand(80, 1, dtype=torch.float64)
u_data = exact(x_data, t_data)

for it in range(25):
    x_col = torch.rand(120, 1, dtype=torch.float64, requires_grad=True)
    t_col = torch.rand(120, 1, dtype=torch.float64, requires_grad=True)
    opt.zero_grad()
    fit = (problem(x_data, t_data) - u_data).pow(2).mean()
    physics = problem.residual(x_col, t_col).pow(2).mean()
    loss = fit + 0.1 * physics
    loss.backward()
    opt.step()
print(f"nu = {problem.nu.item():.3f} (true {TRUE_NU})")
