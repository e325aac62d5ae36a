# /// case
# title = "u_xx of a PINN has no graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["u_xx", "create_graph"]
# symptom = "only the boundary term trains"
# symptom_check = "torch.autograd.grad(pinn.residual(edge).sum(), pinn.f[0].weight, allow_unused=True)[0] is None"
# cause = "the second derivative is taken without create_graph"
# fix = "create_graph=True"
# ///
import torch
import torch.nn as nn


class PINN(nn.Module):
    """u'' = -pi^2 sin(pi x) on [0, 1], u(0) = u(1) = 0."""

    def __init__(self, width=24):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.f(x)

    def residual(self, x):
        x = x.clone().requires_grad_(True)
        u = self(x)
        ones = torch.ones_like(u)
        u_x = torch.autograd.grad(u, x, ones, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, ones)[0]  #- here
#+         u_xx = torch.autograd.grad(u_x, x, ones, create_graph=True)[0]
        return u_xx + torch.pi ** 2 * torch.sin(torch.pi * x)


torch.manual_seed(33)
pinn = PINN()
opt = torch.optim.Adam(pinn.parameters(), lr=2e-3)
edge = torch.tensor([[0.0], [1.0]])
for epoch in range(40):
    x = torch.rand(64, 1)
    res = pinn.residual(x)
    loss = res.pow(2).mean() + 20 * pinn(edge).pow(2).mean()  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), res.pow(2).mean().item())
