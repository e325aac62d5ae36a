# /// case
# category = "graph"
# kind = "missing-create-graph"
# severity = "warning"
# names = ["slopes", "grads"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)


def penalty(real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    slopes = torch.autograd.grad(critic(between).sum(), between)[0]  #- here
#+     slopes = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
    return (slopes.norm(dim=1) - 1).pow(2).mean()


for _ in range(3):
    real, fake = torch.randn(8, 3) + 2, torch.randn(8, 3)
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
