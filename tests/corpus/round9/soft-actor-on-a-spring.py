# /// case
# title = "The actor of soft actor-critic draws its actions with sample, not rsample"
# category = "graph-break"
# kind = "sample-instead-of-rsample"
# kinds_also_ok = ["non-reparameterized-sample", "action-detached-from-policy", "graph-broken-by-sampling"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sample", "raw", "actor", "actor_loss"]
# symptom = "the value of the critic gives the actor no gradient; only the log-probability does"
# symptom_check = "not actor(state)[0].requires_grad"
# cause = "sample draws without a gradient, so the action is a constant for the critic, and the pathwise gradient of Q is lost."
# fix = "rsample"
# ///
import copy
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributions import Normal


@dataclass
class Config:
    gamma: float = 0.97
    tau: float = 0.02
    alpha: float = 0.1
    lr: float = 3e-3


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.ReLU())
        self.mean, self.log_std = nn.Linear(32, 1), nn.Linear(32, 1)

    def forward(self, state):
        h = self.body(state)
        dist = Normal(self.mean(h), self.log_std(h).clamp(-4, 1).exp())
        raw = dist.sample()  #- here
#+         raw = dist.rsample()
        action = raw.tanh()  #! also
        log_prob = dist.log_prob(raw) - (1 - action.square() + 1e-6).log()
        return action, log_prob


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, state, action):
        return self.net(torch.cat([state, action], 1))


def spring(state, action):
    place, speed = state.unbind(1)
    speed = speed + 0.1 * (action[:, 0] - place)
    place = place + 0.1 * speed
    return torch.stack([place, speed], 1), -(place.square() + 0.1 * speed.square()).unsqueeze(1)


torch.manual_seed(0)
cfg = Config()
actor, critic = Actor(), Critic()
target = copy.deepcopy(critic).requires_grad_(False)
actor_opt = torch.optim.Adam(actor.parameters(), lr=cfg.lr)
critic_opt = torch.optim.Adam(critic.parameters(), lr=cfg.lr)
state = torch.randn(64, 2)
for step in range(15):
    with torch.no_grad():
        action, _ = actor(state)
        following, reward = spring(state, action)
        next_action, next_log_prob = actor(following)
        goal = reward + cfg.gamma * (target(following, next_action) - cfg.alpha * next_log_prob)
    critic_loss = (critic(state, action) - goal).square().mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    chosen, log_prob = actor(state)
    actor_loss = (cfg.alpha * log_prob - critic(state, chosen)).mean()  #! also
    actor_opt.zero_grad()
    actor_loss.backward()  #! also
    actor_opt.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), critic.parameters()):
            slow.lerp_(fast, cfg.tau)
    state = following
print(f"critic {critic_loss.item():.3f} actor {actor_loss.item():.3f}")
