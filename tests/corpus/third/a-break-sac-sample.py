# /// case
# title = "SAC actor draws its action with sample() instead of rsample()"
# category = "graph-break"
# kind = "graph-break-non-reparameterised-sample"
# severity = "warning"
# severity_by_writer = "error"
# names = ["sample", "u", "dist", "action"]
# difficulty = "medium"
# symptom = "the critic sends no gradient to the policy; only the entropy term moves it"
# symptom_check = "not agent.actor(torch.zeros(2, 3))[0].requires_grad"
# cause = "Distribution.sample() runs under no_grad, the action is a constant for the actor loss"
# fix = "use rsample()"
# evidence = [{ url = "https://github.com/kashif/firedup/issues/9" }, { url = "https://github.com/haarnoja/sac/pull/13" }]
# ///
"""Soft actor-critic on a two-dimensional point-mass toy environment."""
import copy
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

Step = namedtuple("Step", "obs action reward next_obs done")


def net(inp, out, hidden=32):
    return nn.Sequential(nn.Linear(inp, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out))


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.body = net(obs_dim, 2 * act_dim)

    def forward(self, obs):
        mean, log_std = self.body(obs).chunk(2, dim=-1)
        dist = Normal(mean, log_std.clamp(-4, 1).exp())
        u = dist.sample()  #- here
#+         u = dist.rsample()
        action = torch.tanh(u)  #! also
        log_prob = dist.log_prob(u) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(dim=-1)


class SAC:
    def __init__(self, obs_dim=3, act_dim=1, gamma=0.95, tau=0.02, alpha=0.1):
        self.actor = Actor(obs_dim, act_dim)
        self.q1, self.q2 = net(obs_dim + act_dim, 1), net(obs_dim + act_dim, 1)
        self.t1, self.t2 = copy.deepcopy(self.q1).requires_grad_(False), copy.deepcopy(self.q2).requires_grad_(False)
        self.gamma, self.tau, self.alpha = gamma, tau, alpha
        self.a_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.q_opt = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()], lr=3e-3)

    def act(self, obs):
        with torch.no_grad():
            return self.actor(obs.unsqueeze(0))[0].squeeze(0)

    def critic_loss(self, b):
        with torch.no_grad():
            a, logp = self.actor(b.next_obs)
            sa = torch.cat([b.next_obs, a], dim=-1)
            soft = torch.min(self.t1(sa), self.t2(sa)).squeeze(-1) - self.alpha * logp
            target = b.reward + self.gamma * (1 - b.done) * soft
        sa = torch.cat([b.obs, b.action], dim=-1)
        return F.mse_loss(self.q1(sa).squeeze(-1), target) + F.mse_loss(self.q2(sa).squeeze(-1), target)

    def actor_loss(self, b):
        a, logp = self.actor(b.obs)  #! also
        sa = torch.cat([b.obs, a], dim=-1)
        q = torch.min(self.q1(sa), self.q2(sa)).squeeze(-1)
        return (self.alpha * logp - q).mean()  #! also

    def update(self, batch):
        q_loss = self.critic_loss(batch)
        self.q_opt.zero_grad()
        q_loss.backward()
        self.q_opt.step()

        a_loss = self.actor_loss(batch)
        self.a_opt.zero_grad()
        a_loss.backward()
        self.a_opt.step()

        with torch.no_grad():
            for online, target in ((self.q1, self.t1), (self.q2, self.t2)):
                for p, t in zip(online.parameters(), target.parameters()):
                    t.lerp_(p, self.tau)
        return q_loss.item(), a_loss.item()


def env_step(obs, action):
    pos, vel, goal = obs
    vel = 0.9 * vel + 0.3 * action[0]
    pos = pos + 0.2 * vel
    return torch.stack([pos, vel, goal]), -(pos - goal).abs().item()


torch.manual_seed(0)
random.seed(0)
agent, buffer = SAC(), deque(maxlen=500)
for episode in range(4):
    obs = torch.tensor([0.0, 0.0, random.uniform(-1, 1)])
    for t in range(10):
        action = agent.act(obs)
        nxt, reward = env_step(obs, action)
        buffer.append(Step(obs, action, torch.tensor(reward), nxt, torch.tensor(float(t == 9))))
        obs = nxt
        if len(buffer) >= 16 and t % 2 == 0:
            batch = Step(*map(torch.stack, zip(*random.sample(buffer, 16))))
            q_loss, a_loss = agent.update(batch)
print(f"critic {q_loss:.3f} actor {a_loss:.3f}")
