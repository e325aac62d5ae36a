# /// case
# title = "The discriminator loss is not cut off from the generator and G's gradients are not cleared before its step"
# category = "gan"
# kind = "missing-detach"
# severity = "warning"
# names = ["fake", "gen"]
# difficulty = "hard"
# symptom = "silent: G's update contains the discriminator's objective"
# symptom_check = "polluted > 0"
# cause = "fake is not detached in the D step; gen_opt.zero_grad() only at the loop start"
# fix = "D(fake.detach())"
# evidence = [
#     { url = "https://github.com/heykeetae/Self-Attention-GAN/issues/48" },
#     { url = "https://github.com/yunjey/pytorch-tutorial/issues/56" },
#     { url = "https://github.com/eriklindernoren/PyTorch-GAN/issues/136" },
# ]
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(5)
gen = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 5))
critic = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))
gen_opt = torch.optim.RMSprop(gen.parameters(), lr=1e-4)
critic_opt = torch.optim.RMSprop(critic.parameters(), lr=1e-4)
for it in range(4):
    gen_opt.zero_grad()
    critic_opt.zero_grad()
    fake = gen(torch.randn(12, 3))
    sample = torch.randn(12, 5) - 1
    d_cost = F.softplus(-critic(sample)).mean() + F.softplus(critic(fake)).mean()  #- here
#+     d_cost = F.softplus(-critic(sample)).mean() + F.softplus(critic(fake.detach())).mean()
    d_cost.backward()
    critic_opt.step()
    polluted = sum(p.grad.abs().sum().item() for p in gen.parameters() if p.grad is not None)
    g_cost = F.softplus(-critic(gen(torch.randn(12, 3)))).mean()
    g_cost.backward()
    gen_opt.step()  #! also
print(d_cost.item(), g_cost.item())
