# /// case
# title = "Gradient penalty without create_graph: it is a constant"
# category = "higher-order"
# kind = "missing-create-graph"
# severity = "warning"
# names = ["g", "penalty"]
# difficulty = "hard"
# symptom = "silent: penalty.requires_grad is False, the critic is not regularised"
# symptom_check = "not penalty.requires_grad"
# cause = "autograd.grad returns a tensor without history"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/ooples/AiDotNet/issues/1844" },
#     { url = "https://github.com/igul222/improved_wgan_training/issues/18" },
#     { url = "https://github.com/caogang/wgan-gp/issues/4" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(7)
critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1, bias=False))
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for it in range(5):
    real, fake = torch.randn(20, 2), torch.randn(20, 2) + 2
    eps = torch.rand(20, 1)
    mid = (eps * real + (1 - eps) * fake).requires_grad_()
    (g,) = torch.autograd.grad(critic(mid).sum(), mid)  #- here
#+     (g,) = torch.autograd.grad(critic(mid).sum(), mid, create_graph=True)
    penalty = (g.norm(2, dim=1) - 1).pow(2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), penalty.item())
