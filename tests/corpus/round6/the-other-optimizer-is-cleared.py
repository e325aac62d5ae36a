# /// case
# title = "Before the critic's step the actor's gradients are cleared"
# category = "accumulation"
# kind = "wrong-optimizer-cleared"
# kinds_also_ok = ["stale-gradient", "missing-zero-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["critic_opt", "zero_grad"]
# symptom = "the critic steps with gradients of all earlier steps and of the actor's loss"
# symptom_check = "not torch.allclose(grad, torch.autograd.grad(torch.nn.functional.mse_loss(goal_net(torch.cat([s, a], 1)), goal), goal_net[0].weight)[0], atol=1e-5)"
# cause = "the critic's gradients are never cleared"
# fix = "critic_opt.zero_grad()"
# ///
import copy
import torch
import torch.nn as nn


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, n_out))


class DDPG:
    def __init__(self, obs=3, act=1):
        self.actor, self.critic = mlp(obs, act), mlp(obs + act, 1)
        self.actor_target, self.critic_target = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def update(self, s, a, r, s2, gamma=0.95):
        with torch.no_grad():
            q2 = self.critic_target(torch.cat([s2, self.actor_target(s2)], 1))
            goal = r + gamma * q2
        critic_loss = nn.functional.mse_loss(self.critic(torch.cat([s, a], 1)), goal)
        self.actor_opt.zero_grad()  #- here
#+         self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()  #! also
        grad = self.critic[0].weight.grad.clone()
        actor_loss = -self.critic(torch.cat([s, self.actor(s)], 1)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        return critic_loss.item(), grad


torch.manual_seed(30)
agent = DDPG()
s, a = torch.randn(64, 3), torch.rand(64, 1) * 2 - 1
r, s2 = -(s[:, :1] - a) ** 2, torch.randn(64, 3)
for i in range(6):
    goal_net = copy.deepcopy(agent.critic)
    value, grad = agent.update(s, a, r, s2)
    print(i, value)
with torch.no_grad():
    goal = r + 0.95 * agent.critic_target(torch.cat([s2, agent.actor_target(s2)], 1))
