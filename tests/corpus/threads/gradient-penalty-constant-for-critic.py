# /// case
# title = "WGAN-GP penalty without create_graph"
# category = "uncovered"
# kind = "missing-create-graph"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# names = ["grad", "penalty"]
# symptom = "the penalty has no grad_fn"
# symptom_check = "penalty.grad_fn is None"
# cause = "create_graph is False"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/ooples/AiDotNet/issues/1844", title = "WGAN-GP gradient penalty not backpropagating into discriminator weights (createGraph=false in nested tape)" },
#     { url = "https://github.com/mlpack/mlpack/issues/3063", title = "Backward Pass of Gradient Penalty is missing in WGAN-GP" },
# ]
# ///
import torch
from torch import autograd, nn

torch.manual_seed(2)
gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
critic = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    eps = torch.rand(len(real), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mixed)
    (g,) = autograd.grad(score.sum(), mixed, retain_graph=True)  #- here
#+     (g,) = autograd.grad(score.sum(), mixed, create_graph=True)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


for it in range(6):
    real, fake = torch.randn(16, 3) * 2, gen(torch.randn(16, 4)).detach()
    penalty = gradient_penalty(real, fake)  #! also
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty  #! also
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
    if it % 3 == 2:
        opt_g.zero_grad()
        (-critic(gen(torch.randn(16, 4))).mean()).backward()
        opt_g.step()
