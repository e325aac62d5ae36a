# /// case
# title = "SAC actor that draws its action with sample()"
# category = "partial-cut"
# kind = "graph-break-sample"
# kinds_also_ok = ["graph-break-non-reparameterised-sample"]
# severity = "warning"
# names = ["action", "sample"]
# symptom = "the action has no grad_fn, so the critic's opinion never reaches the actor"
# symptom_check = "action.grad_fn is None"
# cause = "sample() is not reparameterised"
# fix = "rsample()"
# evidence = [
#     { url = "https://github.com/kashif/firedup/issues/9", title = "pi = policy.rsample()?" },
#     { url = "https://github.com/jankrepl/deepdow/pull/106", title = "Fix rsample bug" },
# ]
# ///
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(8)


def mlp(inp, out):
    return nn.Sequential(nn.Linear(inp, 32), nn.ReLU(), nn.Linear(32, out))


actor, q1 = mlp(3, 2), mlp(4, 1)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
q_opt = torch.optim.Adam(q1.parameters(), lr=1e-3)
alpha = 0.2


def act(obs):
    mu, log_std = actor(obs).chunk(2, dim=-1)
    dist = Normal(mu, log_std.clamp(-5, 2).exp())
    action = dist.sample()  #- here
#+     action = dist.rsample()
    return action, dist.log_prob(action)


for step in range(8):
    obs, act_buf, target = torch.randn(32, 3), torch.randn(32, 1), torch.randn(32, 1)
    q_opt.zero_grad()
    (q1(torch.cat([obs, act_buf], -1)) - target).pow(2).mean().backward()
    q_opt.step()
    for p in q1.parameters():
        p.requires_grad_(False)
    actor_opt.zero_grad()
    action, logp = act(obs)  #! also
    actor_loss = (alpha * logp - q1(torch.cat([obs, action], -1))).mean()  #! also
    actor_loss.backward()
    actor_opt.step()
    for p in q1.parameters():
        p.requires_grad_(True)
