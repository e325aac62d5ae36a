# /// case
# category = "graph"
# kind = "missing-create-graph"
# severity = "warning"
# names = ["grad", "create_graph", "penalty"]
# ///
#-
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)

    def slope(self, x):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(self(x).sum(), x)[0].norm(dim=1)  #- here
#+         return torch.autograd.grad(self(x).sum(), x, create_graph=True)[0].norm(dim=1)


torch.manual_seed(0)
critic = Critic()
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(4):
    real, fake = torch.randn(8, 3), torch.randn(8, 3) + 1
    score = critic(fake).mean() - critic(real).mean()
    loss = score + 10 * (critic.slope((real + fake) / 2) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
