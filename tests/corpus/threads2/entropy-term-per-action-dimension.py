# /// case
# title = "Log-probability is not summed over the action dimensions"
# category = "loss"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["log_prob", "target_q"]
# symptom = "target_q has a column for each action dimension"
# symptom_check = "tuple(shape) == (16, 3)"
# cause = "the log-probability of an action is the sum over its dimensions"
# fix = "sum(1, keepdim=True)"
# evidence = [
#     { url = "https://github.com/thu-ml/tianshou/issues/40", title = "Missing sum over log_prob in SAC" },
# ]
# ///
import copy

import torch
from torch import nn
from torch.distributions import Independent, Normal


class SACPolicy:
    def __init__(self, obs=5, act=3, alpha=0.2, gamma=0.99):
        self.actor = nn.Sequential(nn.Linear(obs, 32), nn.ReLU(), nn.Linear(32, 2 * act))
        self.critic = nn.Sequential(nn.Linear(obs + act, 32), nn.ReLU(), nn.Linear(32, 1))
        self.critic_old = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.alpha, self.gamma = alpha, gamma

    def forward(self, obs):
        mu, sigma = self.actor(obs).chunk(2, -1)
        dist = Normal(mu, sigma.clamp(-5, 2).exp())
        x = dist.rsample()
        y = torch.tanh(x)
        log_prob = dist.log_prob(x) - torch.log(1 - y.pow(2) + 1e-6)  #! here
        return y, log_prob  #-
#+         return y, log_prob.sum(1, keepdim=True)

    def learn(self, batch):
        obs, act, rew, obs_next = batch
        with torch.no_grad():
            a_next, logp_next = self.forward(obs_next)
            target_q = self.critic_old(torch.cat([obs_next, a_next], 1)) - self.alpha * logp_next  #! also
            target_q = rew + self.gamma * target_q
        current_q = self.critic(torch.cat([obs, act], 1))
        critic_loss = (current_q - target_q).pow(2).mean()  #! also
        self.critic_optim.zero_grad()
        critic_loss.backward()
        self.critic_optim.step()
        a, logp = self.forward(obs)
        actor_loss = (self.alpha * logp - self.critic(torch.cat([obs, a], 1))).mean()  #! also
        self.actor_optim.zero_grad()
        actor_loss.backward()
        self.actor_optim.step()
        return target_q.shape


torch.manual_seed(79)
policy = SACPolicy()
for _ in range(4):
    shape = policy.learn((torch.randn(16, 5), torch.rand(16, 3) * 2 - 1, torch.randn(16, 1), torch.randn(16, 5)))
print(shape)
