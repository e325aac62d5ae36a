# /// case
# title = "SAC's actor draws its action with sample() and gets no gradient of Q"
# category = "graph-break"
# kind = "sample-instead-of-rsample"
# kinds_also_ok = ["non-reparameterised-sample", "missing-reparameterisation", "graph-break", "rsample-missing"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sample", "rsample", "actor", "action"]
# symptom = "the actor's loss reaches the actor only through the log-probability, so the action is never improved by the critic"
# symptom_check = "not learner.actor(torch.zeros(2, 2))[0].requires_grad"
# cause = "Normal.sample() draws without gradient, so the action handed to the critics does not depend on the actor."
# fix = "use rsample()"
# ///
import copy
import math
import random

import torch
from torch import nn
import torch.nn.functional as F
from torch.distributions import Normal


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class SquashedActor(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=32):
        super().__init__()
        self.trunk = mlp(obs_dim, hidden, 2 * act_dim)

    def forward(self, obs, deterministic=False):
        mean, log_std = self.trunk(obs).chunk(2, dim=-1)
        dist = Normal(mean, log_std.clamp(-4, 1).exp())
        raw = mean if deterministic else dist.sample()  #- here
#+         raw = mean if deterministic else dist.rsample()
        log_prob = dist.log_prob(raw).sum(-1)
        log_prob = log_prob - (2 * (math.log(2) - raw - F.softplus(-2 * raw))).sum(-1)
        return raw.tanh(), log_prob  #! also


class TwinCritic(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden=32):
        super().__init__()
        self.heads = nn.ModuleList(mlp(obs_dim + act_dim, hidden, 1) for _ in range(2))

    def forward(self, obs, action):
        joint = torch.cat([obs, action], dim=-1)
        return torch.stack([head(joint).squeeze(-1) for head in self.heads])


class SAC:
    def __init__(self, obs_dim, act_dim, gamma=0.95, tau=0.02):
        self.gamma, self.tau = gamma, tau
        self.actor, self.critic = SquashedActor(obs_dim, act_dim), TwinCritic(obs_dim, act_dim)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = torch.tensor(-2.0, requires_grad=True)
        self.entropy_floor = -float(act_dim)
        self.opt_actor = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.opt_critic = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.opt_alpha = torch.optim.Adam([self.log_alpha], lr=3e-3)

    def update(self, obs, action, reward, following):
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_action, next_log_prob = self.actor(following)
            bootstrap = self.target(following, next_action).amin(0) - alpha * next_log_prob
            goal = reward + self.gamma * bootstrap
        critic_loss = (self.critic(obs, action) - goal).square().mean()
        self.opt_critic.zero_grad()
        critic_loss.backward()
        self.opt_critic.step()

        fresh, log_prob = self.actor(obs)
        actor_loss = (alpha * log_prob - self.critic(obs, fresh).amin(0)).mean()  #! also
        self.opt_actor.zero_grad()
        actor_loss.backward()  #! also
        self.opt_actor.step()

        alpha_loss = -(self.log_alpha * (log_prob.detach() + self.entropy_floor)).mean()
        self.opt_alpha.zero_grad()
        alpha_loss.backward()
        self.opt_alpha.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.critic.parameters()):
                slow.lerp_(fast, self.tau)


def dynamics(state, action):
    position, velocity = state.unbind(-1)
    velocity = 0.95 * velocity + 0.3 * action.squeeze(-1)
    position = position + 0.3 * velocity
    return torch.stack([position, velocity], -1), -(position.square() + 0.1 * velocity.square()).clamp(max=5)


torch.manual_seed(21)
random.seed(21)
learner, memory, returns = SAC(2, 1), [], []
for episode in range(24):
    state, total = torch.randn(16, 2), 0.0
    for _ in range(10):
        with torch.no_grad():
            action, _ = learner.actor(state)
        following, reward = dynamics(state, action)
        memory.append((state, action, reward, following))
        state, total = following, total + reward.mean().item()
        learner.update(*(torch.cat(column) for column in zip(*random.choices(memory, k=4))))
    returns.append(total)
print("return", [round(r, 2) for r in returns[::5]])
