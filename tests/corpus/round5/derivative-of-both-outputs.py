# /// case
# title = "The derivative is that of the sum of two outputs"
# category = "higher-order"
# kind = "wrong-derivative"
# kinds_also_ok = ["summed-outputs"]
# severity = "warning"
# names = ["out", "u_x", "derivative"]
# symptom = "the residual uses d(u+v)/dx where du/dx is meant"
# symptom_check = "not torch.allclose(u_x, reference)"
# cause = "out.sum() sums over the fields too"
# fix = "take the one column before summing over points"
# evidence = [
#     { url = "https://github.com/nanditadoloi/PINN/issues/3", title = "Mistake in computing derivatives of u" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(25)


class FlowNet(nn.Module):
    """(x, y) -> (u, v), two velocity components."""

    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x, y):
        return self.net(torch.cat([x, y], dim=1))


def derivative(out, wrt):
    return torch.autograd.grad(out.sum(), wrt, create_graph=True)[0]  #! also


def continuity(net, x, y):
    out = net(x, y)
    u_x = derivative(out, x)  #- here
    v_y = derivative(out, y)  #- here
#+     u_x = derivative(out[:, :1], x)
#+     v_y = derivative(out[:, 1:], y)
    return u_x + v_y


net = FlowNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
mse = nn.MSELoss()
wall = torch.rand(40, 1)
for it in range(20):
    # inflow on the left, no slip at the bottom
    inflow = net(torch.zeros_like(wall), wall)
    bottom = net(wall, torch.zeros_like(wall))
    mse_bc = mse(inflow[:, :1], wall * (1 - wall)) + mse(bottom, torch.zeros_like(bottom))
    x = torch.rand(100, 1, requires_grad=True)
    y = torch.rand(100, 1, requires_grad=True)
    f = continuity(net, x, y)
    loss = mse_bc + mse(f, torch.zeros_like(f))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

x, y = torch.rand(5, 1, requires_grad=True), torch.rand(5, 1, requires_grad=True)
u_x = continuity(net, x, y)
jac = torch.autograd.functional.jacobian(lambda a: net(a, y)[:, 0], x)[range(5), range(5), 0]
jac_v = torch.autograd.functional.jacobian(lambda b: net(x, b)[:, 1], y)[range(5), range(5), 0]
reference = (jac + jac_v)[:, None]
print(loss.item(), (u_x - reference).abs().max().item())
