# /// case
# category = "training"
# kind = "tracked-advantage"
# severity = "warning"
# names = ["advantage", "value"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-2)
for _ in range(4):
    obs, returns = torch.randn(20, 4), torch.randn(20)
    pi = torch.distributions.Categorical(logits=actor(obs))
    act = pi.sample()
    value = critic(obs).squeeze(1)
    advantage = returns - value  #-
#+     advantage = (returns - value).detach()
    actor_loss = -(pi.log_prob(act) * advantage).mean()  #! here
    critic_loss = nn.functional.mse_loss(value, returns)
    opt.zero_grad()
    (actor_loss + 0.5 * critic_loss).backward()
    opt.step()
    print(actor_loss.item())
