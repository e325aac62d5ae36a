# /// case
# title = "Advantage is not detached in the policy loss"
# category = "rl-ssl-stopgrad"
# kind = "missing-detach"
# severity = "warning"
# severity_by_writer = "error"
# names = ["advantage", "value", "policy", "losses"]
# difficulty = "medium"
# symptom = "the value network is also trained by the policy loss; no message"
# symptom_check = "torch.autograd.grad(learner.losses(collect(learner, 8))[\"policy\"], list(learner.value.parameters()), allow_unused=True)[0] is not None"
# cause = "advantage = returns - value carries the graph of the value network into the policy term"
# fix = "detach the advantage"
# evidence = [{ url = "https://github.com/astariul/encode-attend-navigate-pytorch/issues/2" }, { url = "https://github.com/coreylynch/async-rl/issues/8" }, { url = "https://github.com/Farama-Foundation/Gymnasium/issues/1494" }]
# ///
"""A2C with generalised advantage estimates on a one-dimensional tracking task."""
from dataclasses import dataclass, field
from typing import List

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal


@dataclass
class Rollout:
    obs: List[torch.Tensor] = field(default_factory=list)
    actions: List[torch.Tensor] = field(default_factory=list)
    rewards: List[torch.Tensor] = field(default_factory=list)

    def add(self, o, a, r):
        self.obs.append(o)
        self.actions.append(a)
        self.rewards.append(r)

    def stacked(self):
        return torch.stack(self.obs), torch.stack(self.actions), torch.stack(self.rewards)


class Learner:
    def __init__(self, gamma=0.95, lam=0.9, lr=3e-3):
        self.policy = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
        self.value = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.tensor(-0.5))
        self.gamma, self.lam = gamma, lam
        self.opt = torch.optim.Adam([*self.policy.parameters(), *self.value.parameters(), self.log_std], lr=lr)

    def dist(self, obs):
        return Normal(self.policy(obs).squeeze(-1), self.log_std.exp())

    def gae(self, rewards, values):
        out, running = [], torch.zeros_like(rewards[0])
        for t in reversed(range(len(rewards))):
            following = values[t + 1] if t + 1 < len(rewards) else torch.zeros_like(values[t])
            delta = rewards[t] + self.gamma * following - values[t]
            running = delta + self.gamma * self.lam * running
            out.append(running)
        return torch.stack(out[::-1])

    def losses(self, rollout):
        obs, actions, rewards = rollout.stacked()
        values = self.value(obs).squeeze(-1)
        advantage = self.gae(rewards, values)  #- here
#+         advantage = self.gae(rewards, values).detach()
        returns = (advantage + values).detach()
        dist = self.dist(obs)
        return {
            "policy": -(dist.log_prob(actions) * advantage).mean(),  #! here
            "value": F.mse_loss(values, returns),
            "entropy": -dist.entropy().mean(),
        }

    def update(self, rollout):
        terms = self.losses(rollout)
        loss = terms["policy"] + 0.5 * terms["value"] + 0.01 * terms["entropy"]
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return {k: v.item() for k, v in terms.items()}


def collect(learner, envs, steps=12):
    rollout = Rollout()
    pos, goal = torch.zeros(envs), torch.rand(envs) * 2 - 1
    vel = torch.zeros(envs)
    for _ in range(steps):
        obs = torch.stack([pos, vel, goal], dim=-1)
        with torch.no_grad():
            action = learner.dist(obs).sample()
        vel = 0.8 * vel + 0.2 * action.clamp(-1, 1)
        pos = pos + vel
        rollout.add(obs, action, -(pos - goal).abs())
    return rollout


torch.manual_seed(0)
learner = Learner()
for it in range(15):
    stats = learner.update(collect(learner, 16))
print(stats)
