# /// case
# title = "The gradient penalty has no graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["autograd.grad", "create_graph", "retain_graph"]
# symptom = "the penalty is a constant of the loss"
# symptom_check = "not gp.requires_grad"
# cause = "retain_graph keeps the graph, but does not build that of the gradient"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/ooples/AiDotNet/issues/1844", title = "WGAN-GP gradient penalty not backpropagating into discriminator weights (createGraph=false in nested tape)" },
# ]
# ///
import torch
import torch.nn as nn
from torch import autograd

torch.manual_seed(17)
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
gen = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4, betas=(0.0, 0.9))
real_data = torch.randn(256, 2) * 0.3 + torch.tensor([1.0, -1.0])


def gradient_penalty(real, fake):
    eps = torch.rand(len(real), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    scores = critic(mixed)
    (grads,) = autograd.grad(scores, mixed, torch.ones_like(scores), retain_graph=True)  #- here
#+     (grads,) = autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True)
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


for it in range(12):
    real = real_data[torch.randint(0, 256, (64,))]
    fake = gen(torch.randn(64, 4)).detach()
    gp = gradient_penalty(real, fake)
    loss_c = critic(fake).mean() - critic(real).mean() + 10 * gp  #! also
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    if it % 4 == 3:
        loss_g = -critic(gen(torch.randn(64, 4))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
print(loss_c.item(), gp.item())
