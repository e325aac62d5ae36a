# /// case
# title = "Derivative with respect to a column that was sliced after the forward pass"
# category = "higher-order"
# kind = "grad-wrt-unused-input"
# severity = "error"
# names = ["x", "t", "u_x", "u_t"]
# symptom = "RuntimeError: a differentiated tensor was not used in the graph"
# raises = "RuntimeError"
# raises_message = "appears to not have been used in the graph"
# cause = "u was computed from points, not from the slices x and t"
# fix = "build the input from x and t"
# evidence = [
#     { url = "https://github.com/madagra/basic-pinn/issues/4", title = "How can I calculate the gradients of my outputs with respect to specific input values of my Tensor?" },
# ]
# ///
import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        hidden = [nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()]
        self.layers = nn.Sequential(*hidden, nn.Linear(width, 1))

    def forward(self, points):
        return self.layers(points)


def derivative(u, var):
    return torch.autograd.grad(u, var, torch.ones_like(u), create_graph=True)[0]


def pde_residual(model, points, c=1.0):
    u = model(points)  #- also
    x, t = points[:, :1], points[:, 1:]  #! here
#+     u = model(torch.cat([x, t], 1))
    u_x = derivative(u, x)  #! here
    u_t = derivative(u, t)  #! also
    u_xx = derivative(u_x, x)
    u_tt = derivative(u_t, t)
    return u_tt - c**2 * u_xx


torch.manual_seed(2)
model = Field()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(5):
    points = torch.rand(64, 2, requires_grad=True)
    boundary = torch.cat([torch.zeros(16, 1), torch.rand(16, 1)], 1)
    loss = pde_residual(model, points).pow(2).mean() + model(boundary).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
