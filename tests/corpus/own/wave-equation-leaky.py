# /// case
# category = "gradient"
# kind = "second-derivative-zero"
# severity = "warning"
# names = ["u_tt", "LeakyReLU", "leaky"]
# ///
#-
import torch
from torch import nn


def derivative(value, by):
    return torch.autograd.grad(value, by, torch.ones_like(value), create_graph=True)[0]


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(2, 24), nn.Linear(24, 1)
        self.bend = nn.LeakyReLU(0.1)  #- here
#+         self.bend = nn.Tanh()

    def forward(self, x, t):
        return self.outer(self.bend(self.inner(torch.cat([x, t], 1))))


torch.manual_seed(0)
net = Wave()
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(3):
    x = torch.rand(16, 1, requires_grad=True)
    t = torch.rand(16, 1, requires_grad=True)
    u = net(x, t)
    u_t = derivative(u, t)
    u_tt = torch.autograd.grad(u_t.sum(), t, create_graph=True)[0]  #! here
    loss = (u_tt + u).pow(2).mean() + u_t.pow(2).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
print(loss.item())
