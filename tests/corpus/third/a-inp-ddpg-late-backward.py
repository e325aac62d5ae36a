# /// case
# title = "Actor loss is built before the critic step and differentiated after it"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["pi_loss", "critic_opt", "critic", "step"]
# difficulty = "medium"
# symptom = "RuntimeError in pi_loss.backward(): modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "critic_opt.step() changes the critic weights in place that the graph of pi_loss saved"
# fix = "compute the actor loss after the critic step"
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/39141" }, { url = "https://github.com/ayu-22/BPPNet-Back-Projected-Pyramid-Network/issues/6" }, { url = "https://github.com/knazeri/edge-connect/issues/188" }]
# ///
"""Deterministic policy gradient on a one-step continuous control problem."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Critic(nn.Module):
    def __init__(self, obs, act, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs + act, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], dim=-1)).squeeze(-1)


class Policy(nn.Module):
    def __init__(self, obs, act, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, hidden), nn.ReLU(), nn.Linear(hidden, act), nn.Tanh())

    def forward(self, s):
        return self.net(s)


class DDPG:
    def __init__(self, obs=4, act=2, gamma=0.9, tau=0.05):
        self.actor, self.critic = Policy(obs, act), Critic(obs, act)
        self.actor_t = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_t = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3)
        self.gamma, self.tau = gamma, tau

    def update(self, s, a, r, s2):
        with torch.no_grad():
            target = r + self.gamma * self.critic_t(s2, self.actor_t(s2))
        q_loss = F.mse_loss(self.critic(s, a), target)
        pi_loss = -self.critic(s, self.actor(s)).mean()  #- here

        self.critic_opt.zero_grad()
        q_loss.backward()
        self.critic_opt.step()  #! here

#+         pi_loss = -self.critic(s, self.actor(s)).mean()
        self.actor_opt.zero_grad()
        pi_loss.backward()  #! here
        self.actor_opt.step()
        self.soft_update()
        return q_loss.item(), pi_loss.item()

    @torch.no_grad()
    def soft_update(self):
        for net, tgt in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
            for p, t in zip(net.parameters(), tgt.parameters()):
                t.mul_(1 - self.tau).add_(p, alpha=self.tau)


def transitions(n):
    s = torch.randn(n, 4)
    a = torch.rand(n, 2) * 2 - 1
    reward = -(a - s[:, :2].tanh()).pow(2).sum(dim=1)
    return s, a, reward, s + 0.1 * torch.randn(n, 4)


torch.manual_seed(0)
agent = DDPG()
for it in range(25):
    stats = agent.update(*transitions(64))
print("critic %.3f  actor %.3f" % stats)
