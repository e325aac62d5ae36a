# /// case
# title = "The actor's loss is computed before the critic is stepped and differentiated after"
# category = "in-place"
# kind = "parameters-stepped-before-backward"
# kinds_also_ok = ["in-place-modification", "optimizer-step-between-forward-and-backward", "version-counter-mismatch"]
# severity = "error"
# names = ["actor_loss", "critic", "critic_opt", "step"]
# symptom = "backward raises, since the critic's weights have been changed in place since the forward pass"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "critic_opt.step() changes the weights that the graph of actor_loss needs."
# fix = "compute the actor's loss after the critic's step"
# ///
import copy
from collections import deque
from random import Random

import torch
from torch import nn
import torch.nn.functional as F


class OrnsteinUhlenbeck:
    def __init__(self, shape, theta=0.15, sigma=0.25):
        self.theta, self.sigma = theta, sigma
        self.value = torch.zeros(shape)

    def __call__(self):
        self.value = (1 - self.theta) * self.value + self.sigma * torch.randn_like(self.value)
        return self.value


class Replay:
    def __init__(self, capacity, seed):
        self.items, self.random = deque(maxlen=capacity), Random(seed)

    def push(self, *transition):
        self.items.append(transition)

    def draw(self, count):
        return [torch.cat(part) for part in zip(*self.random.sample(self.items, count))]


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, act_dim), nn.Tanh())

    def forward(self, obs):
        return self.net(obs)


class Critic(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim + act_dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, obs, action):
        return self.net(torch.cat([obs, action], -1)).squeeze(-1)


class DDPG:
    def __init__(self, obs_dim, act_dim, gamma=0.97, polyak=0.98):
        self.gamma, self.polyak = gamma, polyak
        self.actor, self.critic = Actor(obs_dim, act_dim), Critic(obs_dim, act_dim)
        self.slow_actor, self.slow_critic = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3)

    def learn(self, obs, action, reward, following):
        with torch.no_grad():
            target = reward + self.gamma * self.slow_critic(following, self.slow_actor(following))
        critic_loss = F.smooth_l1_loss(self.critic(obs, action), target)
        actor_loss = -self.critic(obs, self.actor(obs)).mean()  #- here
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()  #! also
#+         actor_loss = -self.critic(obs, self.actor(obs)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()  #! also
        self.actor_opt.step()
        self.follow()
        return critic_loss.item(), actor_loss.item()

    @torch.no_grad()
    def follow(self):
        for slow, fast in ((self.slow_actor, self.actor), (self.slow_critic, self.critic)):
            for s, f in zip(slow.parameters(), fast.parameters()):
                s.mul_(self.polyak).add_(f, alpha=1 - self.polyak)


torch.manual_seed(15)
agent, replay, explore = DDPG(3, 1), Replay(500, seed=15), OrnsteinUhlenbeck((8, 1))
state = torch.randn(8, 3)
for step in range(200):
    with torch.no_grad():
        action = (agent.actor(state) + explore()).clamp(-1, 1)
    following = 0.9 * state + 0.2 * torch.cat([state[:, 1:], action], 1)
    replay.push(state, action, -following.square().sum(1), following)
    state = following if step % 20 else torch.randn(8, 3)
    if step >= 16:
        critic_value, actor_value = agent.learn(*replay.draw(8))
print(f"critic {critic_value:.4f} actor {actor_value:.4f}")
