# /// case
# title = "The entropy temperature gets a backward and no step"
# category = "optimizer"
# kind = "missing-step"
# kinds_also_ok = ["optimizer-never-stepped"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["alpha_opt", "log_alpha"]
# symptom = "log_alpha keeps its start value"
# symptom_check = "log_alpha.item() == 0.0"
# cause = "alpha_loss.backward() fills log_alpha.grad, and alpha_opt.step() is called nowhere."
# fix = "alpha_opt.step() after the backward"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.manual_seed(1234)
OBS, ACT, BATCH = 4, 2, 32
policy = nn.Sequential(nn.Linear(OBS, 32), nn.ReLU(), nn.Linear(32, 2 * ACT))
q_net = nn.Sequential(nn.Linear(OBS + ACT, 32), nn.ReLU(), nn.Linear(32, 1))
log_alpha = torch.zeros((), requires_grad=True)
pi_opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
q_opt = torch.optim.Adam(q_net.parameters(), lr=3e-3)
alpha_opt = torch.optim.Adam([log_alpha], lr=5e-2)  #! also
target_entropy = -float(ACT)


def squashed(obs):
    mean, log_std = policy(obs).chunk(2, dim=1)
    dist = Normal(mean, log_std.clamp(-4, 1).exp())
    raw = dist.rsample()
    action = raw.tanh()
    correction = 2 * (0.6931 - raw - F.softplus(-2 * raw))
    return action, (dist.log_prob(raw) - correction).sum(1)


for it in range(8):
    obs = torch.randn(BATCH, OBS)
    reward = -(obs[:, :ACT] ** 2).sum(1, keepdim=True)
    with torch.no_grad():
        old_action, _ = squashed(obs)
    q_loss = F.mse_loss(q_net(torch.cat([obs, old_action], 1)), reward)
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()

    action, log_prob = squashed(obs)
    alpha = log_alpha.exp().detach()
    pi_loss = (alpha * log_prob - q_net(torch.cat([obs, action], 1)).squeeze(1)).mean()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()

    alpha_loss = -(log_alpha * (log_prob.detach() + target_entropy)).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()  #! here
#+     alpha_opt.step()
    print(it, q_loss.item(), pi_loss.item(), log_alpha.item())
