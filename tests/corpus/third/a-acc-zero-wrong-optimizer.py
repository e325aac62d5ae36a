# /// case
# title = "The actor optimizer is cleared twice, the critic optimizer never"
# category = "accumulation"
# kind = "missing-zero-grad"
# severity = "warning"
# severity_by_writer = "error"
# names = ["critic_opt", "zero_grad", "critic", "actor_opt"]
# difficulty = "medium"
# symptom = "critic gradients add up over all updates"
# symptom_check = "([setattr(p, \"grad\", torch.full_like(p, 1e6)) for p in agent.critic.parameters()], agent.update(*rollout(agent, 16)), min(float(p.grad.abs().max()) for p in agent.critic.parameters()) > 1e5)[2]"
# cause = "copy-paste: actor_opt.zero_grad() stands in the critic block"
# fix = "call critic_opt.zero_grad()"
# evidence = [{ url = "https://github.com/opendp/smartnoise-sdk/issues/280" }, { url = "https://github.com/Adversarial-Deep-Learning/code-soup/issues/69" }]
# ///
"""Advantage actor-critic with separate optimizers on a contextual bandit."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class Agent:
    def __init__(self, features=6, actions=3, hidden=32, entropy=0.01):
        self.actor = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, actions))
        self.critic = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=5e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=5e-3)
        self.entropy = entropy

    def policy(self, x):
        return Categorical(logits=self.actor(x))

    def update(self, x, action, reward):
        value = self.critic(x).squeeze(1)
        advantage = (reward - value).detach()
        dist = self.policy(x)
        actor_loss = -(dist.log_prob(action) * advantage).mean() - self.entropy * dist.entropy().mean()
        critic_loss = F.mse_loss(value, reward)

        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        self.actor_opt.zero_grad()  #- here
#+         self.critic_opt.zero_grad()
        critic_loss.backward()  #! here
        self.critic_opt.step()  #! here
        return actor_loss.item(), critic_loss.item()


def rollout(agent, n):
    x = torch.randn(n, 6)
    with torch.no_grad():
        action = agent.policy(x).sample()
    best = x[:, :3].argmax(dim=1)
    reward = (action == best).float() + 0.1 * torch.randn(n)
    return x, action, reward


torch.manual_seed(0)
agent = Agent()
for it in range(40):
    losses = agent.update(*rollout(agent, 64))
print("actor %.3f critic %.3f" % losses)
