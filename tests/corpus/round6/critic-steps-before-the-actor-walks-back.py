# /// case
# title = "A weight is stepped before a second backward needs it"
# category = "in-place"
# kind = "step-before-backward"
# kinds_also_ok = ["in-place-on-saved"]
# severity = "error"
# names = ["opt_critic.step", "actor_loss"]
# symptom = "the second backward raises"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "the step changes weights that the actor's graph has saved"
# fix = "compute the actor's loss after the critic's step"
# ///
import torch
import torch.nn as nn

torch.manual_seed(26)
actor = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh())
critic = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
opt_actor = torch.optim.Adam(actor.parameters(), lr=3e-4)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)


def q(s, a):
    return critic(torch.cat([s, a], dim=1))


for update in range(4):
    s = torch.randn(40, 4)
    a = torch.rand(40, 2) * 2 - 1
    r = (s[:, :2] * a).sum(1, keepdim=True)
    critic_loss = (q(s, a) - r).pow(2).mean()
    actor_loss = -q(s, actor(s)).mean()  #- here

    opt_critic.zero_grad()
    critic_loss.backward()
    opt_critic.step()  #! also

#+     actor_loss = -q(s, actor(s)).mean()
    opt_actor.zero_grad()
    actor_loss.backward()  #! also
    opt_actor.step()
print(critic_loss.item(), actor_loss.item())
