# /// case
# category = "graph"
# kind = "missing-create-graph"
# severity = "error"
# names = ["loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
energy = nn.Sequential(nn.Linear(2, 16), nn.Softplus(), nn.Linear(16, 1))
adam = torch.optim.Adam(energy.parameters(), lr=1e-3)
sigma = 0.3


def score(x):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(-energy(x).sum(), x)  #- here
#+     (slope,) = torch.autograd.grad(-energy(x).sum(), x, create_graph=True)
    return slope


for _ in range(3):
    clean = torch.randn(32, 2)
    noise = torch.randn_like(clean)
    loss = (sigma * score(clean + sigma * noise) + noise).square().sum(-1).mean()
    adam.zero_grad()
    loss.backward()  #! also
    adam.step()
