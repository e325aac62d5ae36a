# /// case
# title = "The derivative in the residual has no graph"
# category = "higher-order"
# kind = "create-graph-missing"
# kinds_also_ok = ["missing-create-graph", "retain-graph-instead-of-create-graph", "derivative-detached"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["gradient", "u_t", "create_graph", "retain_graph"]
# symptom = "the physics loss trains only u and not u', the solution is wrong"
# symptom_check = "not gradient(*(lambda t: (net(t), t))(t_col.clone().requires_grad_())).requires_grad"
# cause = "autograd.grad without create_graph=True returns a constant derivative."
# fix = "create_graph=True"
# ///
"""Physics informed net for the logistic equation  u' = r u (1 - u),  u(0) = 0.3."""
import torch
import torch.nn as nn

torch.manual_seed(31)
torch.set_num_threads(1)

R = 1.5
U0 = 0.3
T_END = 2.0


class PINN(nn.Module):
    def __init__(self, layers=(1, 24, 24, 1)):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(a, b) for a, b in zip(layers, layers[1:]))

    def forward(self, t):
        for lin in self.linears[:-1]:
            t = torch.tanh(lin(t))
        return self.linears[-1](t)


def gradient(u, t):
    return torch.autograd.grad(  #! also
        u, t,  #! also
        grad_outputs=torch.ones_like(u),  #! also
        retain_graph=True,  #- here
#+         create_graph=True,
    )[0]


def physics_loss(net, t):
    u = net(t)
    u_t = gradient(u, t)  #! also
    residual = u_t - R * u * (1 - u)  #! also
    return (residual ** 2).mean()


def initial_loss(net):
    return (net(torch.zeros(1, 1)) - U0).square().mean()


def exact(t):
    growth = torch.exp(R * t)
    return U0 * growth / (1 - U0 + U0 * growth)


net = PINN()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
t_col = torch.linspace(0, T_END, 50).unsqueeze(1)

for it in range(241):
    optimizer.zero_grad()
    loss_f = physics_loss(net, t_col.clone().requires_grad_(True))
    loss_0 = initial_loss(net)
    loss = loss_f + 10 * loss_0
    loss.backward()
    optimizer.step()
    if it % 80 == 0:
        print("it: %d, physics: %.3e, initial: %.3e" % (it, loss_f.item(), loss_0.item()))

with torch.no_grad():
    error = (net(t_col) - exact(t_col)).abs().max().item()
print("max error", round(error, 4))
