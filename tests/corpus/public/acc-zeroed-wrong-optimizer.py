# /// case
# title = "Two optimizers, the wrong one is cleared: the critic accumulates gradients"
# category = "accumulation"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["critic_opt", "actor_opt"]
# difficulty = "medium"
# symptom = "silent: the critic's gradients add up over the iterations"
# symptom_check = "growth[-1] > 3 * growth[0]"
# cause = "actor_opt.zero_grad() is called twice, critic_opt.zero_grad() never"
# fix = "critic_opt.zero_grad()"
# evidence = [
#     { url = "https://github.com/Hsintien-Ng/idinvert_pytorch-reproduced/issues/1" },
#     { url = "https://github.com/Adversarial-Deep-Learning/code-soup/pull/73" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(8)
actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
actor_opt = torch.optim.SGD(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.SGD(critic.parameters(), lr=1e-4)
growth = []
for ep in range(12):
    state = torch.randn(20, 4)
    ret = state[:, :1] + 5.0
    value = critic(state)
    dist = torch.distributions.Categorical(logits=actor(state))
    act = dist.sample()
    advantage = (ret - value).detach().squeeze(1)
    pi_loss = -(dist.log_prob(act) * advantage).mean()
    v_loss = (ret - value).pow(2).mean()

    actor_opt.zero_grad()
    pi_loss.backward()
    actor_opt.step()

    actor_opt.zero_grad()  #- here
#+     critic_opt.zero_grad()
    v_loss.backward()  #! also
    growth.append(critic[2].bias.grad.norm().item())
    critic_opt.step()  #! also
print(growth[0], growth[-1])
