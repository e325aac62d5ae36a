# /// case
# title = "Advantage not detached in the actor loss: the policy loss trains the critic"
# category = "rl-ssl-stopgrad"
# kind = "missing-detach"
# severity = "warning"
# names = ["adv"]
# difficulty = "hard"
# symptom = "silent: the value head gets gradients from the policy loss"
# symptom_check = "leak > 0"
# cause = "returns - values carries the critic's history"
# fix = "adv.detach()"
# evidence = [
#     { url = "https://github.com/astariul/encode-attend-navigate-pytorch/issues/2" },
#     { url = "https://github.com/keras-team/keras-io/issues/194" },
#     { url = "https://github.com/watchernyu/REDQ/pull/3" },
# ]
# ///
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(14)
policy = nn.Linear(6, 4)
value = nn.Linear(6, 1)
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=3e-3)
for episode in range(5):
    obs = torch.randn(20, 6)
    dist = Categorical(logits=policy(obs))
    act = dist.sample()
    reward = (act == 2).float()
    v = value(obs).squeeze(-1)
    adv = reward - v  #- here
#+     adv = (reward - v).detach()
    pg = -(dist.log_prob(act) * adv).mean()  #! here
    vloss = (reward - v).pow(2).mean()
    extra = torch.autograd.grad(pg, value.weight, retain_graph=True, allow_unused=True)[0]
    leak = 0.0 if extra is None else extra.abs().sum().item()
    opt.zero_grad()
    (pg + 0.5 * vloss).backward()
    opt.step()
print(leak)
