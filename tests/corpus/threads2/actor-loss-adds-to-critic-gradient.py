# /// case
# title = "Critic steps after the actor's backward call"
# category = "accumulation"
# kind = "other-loss-in-gradient"
# severity = "warning"
# names = ["critic_optim", "actor_loss", "critic"]
# symptom = "the critic's step also follows the actor's loss"
# symptom_check = "not any(agent.pure)"
# cause = "actor_loss.backward() writes into the critic before the critic steps"
# fix = "step the critic first, or keep the actor's backward call to the actor"
# evidence = [
#     { url = "https://github.com/JoshuaWu1997/PyTorch-DDPG-Stock-Trading/issues/2", title = "a question in DDPG.train_on_batch" },
#     { url = "https://github.com/pytorch/rl/issues/1187", title = "[BUG] TD3 loss mixes actor and critic grads" },
# ]
# ///
import copy

import torch
from torch import nn


class TD3:
    def __init__(self, obs=4, act=2, tau=0.02):
        self.actor = nn.Sequential(nn.Linear(obs, 32), nn.ReLU(), nn.Linear(32, act), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(obs + act, 32), nn.ReLU(), nn.Linear(32, 1))
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.tau = tau
        self.pure = []

    def q(self, net, s, a):
        return net(torch.cat([s, a], 1))

    def update(self, s, a, r, s2):
        noise = (0.2 * torch.randn_like(a)).clamp(-0.5, 0.5)
        y = r + 0.99 * self.q(self.critic_target, s2, (self.actor_target(s2) + noise).clamp(-1, 1))
        critic_loss = nn.functional.mse_loss(self.q(self.critic, s, a), y)
        actor_loss = -self.q(self.critic, s, self.actor(s)).mean()

        self.critic_optim.zero_grad()
        self.actor_optim.zero_grad()
        critic_loss.backward()
        wanted = self.critic[0].weight.grad.clone()
        actor_loss.backward()  #- here
#+         self.actor_optim.zero_grad()
#+         actor_loss.backward(inputs=list(self.actor.parameters()))
        self.pure.append(torch.allclose(wanted, self.critic[0].weight.grad))
        self.critic_optim.step()  #! here
        self.actor_optim.step()
        for net, target in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
            for p, t in zip(net.parameters(), target.parameters()):
                t.data.lerp_(p.data, self.tau)


torch.manual_seed(0)
agent = TD3()
for it in range(6):
    s, a = torch.randn(32, 4), torch.rand(32, 2) * 2 - 1
    agent.update(s, a, torch.randn(32, 1), torch.randn(32, 4))
print(agent.pure)
