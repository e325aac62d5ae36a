# /// case
# category = "inplace"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["opt_critic", "critic"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
opt_actor = torch.optim.Adam(actor.parameters(), lr=1e-2)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-2)
state = torch.randn(7, 3)
action = actor(state)
value = critic(torch.cat([state, action], 1))
actor_loss = -value.mean()
critic_loss = (critic(torch.cat([state, action.detach()], 1)) - 1.0).pow(2).mean()
opt_critic.zero_grad()
critic_loss.backward()
opt_critic.step()  #- here
opt_actor.zero_grad()
actor_loss.backward()  #! also
opt_actor.step()
#+ opt_critic.step()
print(actor_loss.item())
