# /// case
# title = "log_std is an expression of a Parameter, hence neither a leaf nor registered"
# category = "leaf"
# kind = "non-leaf-parameter"
# kinds_also_ok = ["parameter-not-registered", "expression-of-a-parameter-stored", "not-in-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["log_std", "Parameter"]
# symptom = "the exploration noise never shrinks; log_std stays at -0.5"
# symptom_check = "'log_std' not in dict(policy.named_parameters()) and bool((policy.log_std == -0.5).all())"
# cause = "Subtracting from the Parameter gives an ordinary tensor, which the module does not register and the optimizer never sees."
# fix = "nn.Parameter(torch.zeros(act_dim) - 0.5)"
# ///
import torch
from torch import nn
from torch.distributions import Independent, Normal


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, act_dim))
        self.value = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.zeros(act_dim)) - 0.5  #- here
#+         self.log_std = nn.Parameter(torch.zeros(act_dim) - 0.5)

    def dist(self, obs):
        return Independent(Normal(self.mean(obs), self.log_std.exp()), 1)  #! also


def insertion_reward(obs, act):
    hole = torch.stack([obs[:, 0] * 0.6 + obs[:, 2] * 0.3, obs[:, 1] - 0.4 * obs[:, 2]], dim=1)
    return -(act - hole).square().sum(1)


def rollout(policy, n):
    obs = torch.rand(n, 3) * 2 - 1
    with torch.no_grad():
        dist = policy.dist(obs)
        act = dist.sample()
        reward = insertion_reward(obs, act)
        adv = reward - policy.value(obs).squeeze(-1)
        return obs, act, dist.log_prob(act), reward, (adv - adv.mean()) / (adv.std() + 1e-8)


def ppo_epoch(policy, optimizer, batch, clip=0.2, minibatch=128):
    for rows in torch.randperm(len(batch[0])).split(minibatch):
        obs, act, old_logp, reward, adv = (b[rows] for b in batch)
        ratio = (policy.dist(obs).log_prob(act) - old_logp).exp()
        surrogate = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
        value_loss = (policy.value(obs).squeeze(-1) - reward).square()
        loss = (0.5 * value_loss - surrogate).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()


torch.manual_seed(29)
policy = GaussianPolicy(3, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)  #! also
rewards = []
for iteration in range(25):
    batch = rollout(policy, 512)
    for _ in range(4):
        ppo_epoch(policy, optimizer, batch)
    rewards.append(batch[3].mean().item())
print("reward", rewards[0], "->", rewards[-1], "std", policy.log_std.exp().tolist())
