# /// case
# title = "The actor's loss takes its action from the exploration method that runs without gradients"
# category = "graph-break"
# kind = "action-without-graph-in-actor-loss"
# kinds_also_ok = ["no-grad-in-forward", "detached-action", "actor-gets-no-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["act", "actor_loss", "no_grad", "actor"]
# symptom = "the policy never changes: the actor's parameters have no gradient and its optimizer skips them silently"
# symptom_check = "all(p.grad is None for p in agent.actor.parameters())"
# cause = "act() is decorated with no_grad, so the loss reaches only the critic's parameters."
# fix = "call self.actor(obs) in the loss"
# ///
import copy
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


class PointDock:
    horizon = 20

    def reset(self):
        self.pos, self.vel, self.t = torch.rand(2) * 2 - 1, torch.zeros(2), 0
        return torch.cat([self.pos, self.vel])

    def step(self, action):
        self.vel = 0.8 * self.vel + 0.3 * action
        self.pos = (self.pos + 0.3 * self.vel).clamp(-2, 2)
        self.t += 1
        reward = -self.pos.square().sum() - 0.01 * action.square().sum()
        return torch.cat([self.pos, self.vel]), reward, self.t == self.horizon


def mlp(n_in, n_out, *tail):
    return nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, n_out), *tail)


class DDPG:
    def __init__(self, obs_dim, act_dim, gamma=0.9, tau=0.05):
        self.gamma, self.tau = gamma, tau
        self.actor = mlp(obs_dim, act_dim, nn.Tanh())
        self.critic = mlp(obs_dim + act_dim, 1)
        self.actor_target = copy.deepcopy(self.actor)
        self.critic_target = copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=2e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=5e-3)

    @torch.no_grad()  #! also
    def act(self, obs, noise=0.0):
        action = self.actor(obs)
        return (action + noise * torch.randn_like(action)).clamp(-1, 1)

    def update(self, obs, action, reward, next_obs):
        with torch.no_grad():
            next_q = self.critic_target(torch.cat([next_obs, self.actor_target(next_obs)], -1))
            target = reward.unsqueeze(-1) + self.gamma * next_q
        critic_loss = F.mse_loss(self.critic(torch.cat([obs, action], -1)), target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        actor_loss = -self.critic(torch.cat([obs, self.act(obs)], -1)).mean()  #- here
#+         actor_loss = -self.critic(torch.cat([obs, self.actor(obs)], -1)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()  #! also
        self.actor_opt.step()  #! also

        with torch.no_grad():
            for net, slow in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                for p, q in zip(net.parameters(), slow.parameters()):
                    q.lerp_(p, self.tau)
        return critic_loss.item()


random.seed(0)
torch.manual_seed(0)
env, agent, buffer, returns = PointDock(), DDPG(4, 2), deque(maxlen=2000), []
for episode in range(30):
    obs, done, total = env.reset(), False, 0.0
    while not done:
        action = agent.act(obs, noise=0.4)
        next_obs, reward, done = env.step(action)
        buffer.append((obs, action, reward, next_obs))
        obs, total = next_obs, total + reward.item()
        if len(buffer) >= 64:
            loss = agent.update(*map(torch.stack, zip(*random.sample(buffer, 64))))
    returns.append(total)
print("returns", [round(r, 2) for r in returns[::5]], "critic", loss)
