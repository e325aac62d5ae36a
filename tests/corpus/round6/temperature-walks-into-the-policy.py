# /// case
# title = "The temperature's loss moves the policy"
# category = "loss"
# kind = "missing-detach"
# kinds_also_ok = ["other-loss-gradient", "unwanted-gradient-path"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["alpha_loss", "logp", "log_alpha"]
# symptom = "the policy's entropy term is cancelled by the temperature's loss"
# symptom_check = "torch.autograd.grad(losses(s)[1], policy.mu.weight, allow_unused=True)[0] is not None"
# cause = "logp is not detached, and both losses are walked back together"
# fix = "detach logp in the temperature's loss"
# evidence = [
#     { url = "https://github.com/mani-skill/ManiSkill/issues/899", title = "[BUG] Incorrect Gradient Flow in Alpha-Loss Calculation of SAC Implementation" },
# ]
# ///
import torch
import torch.nn as nn
from torch.distributions import Normal


class SquashedPolicy(nn.Module):
    def __init__(self, obs=3, act=1):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 32), nn.ReLU())
        self.mu, self.log_std = nn.Linear(32, act), nn.Linear(32, act)

    def sample(self, s):
        h = self.body(s)
        dist = Normal(self.mu(h), self.log_std(h).clamp(-5, 2).exp())
        u = dist.rsample()
        a = torch.tanh(u)
        logp = dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)
        return a, logp.sum(1, keepdim=True)


torch.manual_seed(28)
policy = SquashedPolicy()
critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1)).requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True)
pi_opt = torch.optim.Adam(policy.parameters(), lr=3e-4)
alpha_opt = torch.optim.Adam([log_alpha], lr=3e-4)
target_entropy = -1.0


def losses(s):
    a, logp = policy.sample(s)
    pi_loss = (log_alpha.exp().detach() * logp - critic(torch.cat([s, a], 1))).mean()
    alpha_loss = (-log_alpha.exp() * (logp + target_entropy)).mean()  #- here
#+     alpha_loss = (-log_alpha.exp() * (logp.detach() + target_entropy)).mean()
    return pi_loss, alpha_loss


for it in range(8):
    s = torch.randn(128, 3)
    pi_loss, alpha_loss = losses(s)
    pi_opt.zero_grad()
    alpha_opt.zero_grad()
    (pi_loss + alpha_loss).backward()  #! also
    pi_opt.step()
    alpha_opt.step()
print(pi_loss.item(), alpha_loss.item(), log_alpha.item())
