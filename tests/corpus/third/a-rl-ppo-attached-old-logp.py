# /// case
# title = "Old log-probabilities keep their graph, the PPO ratio has zero gradient"
# category = "rl-ssl-stopgrad"
# kind = "missing-detach"
# kinds_also_ok = ["gradient-exactly-zero", "graph-retained-list"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["log_prob", "old_logp", "ratio"]
# difficulty = "hard"
# symptom = "the policy gradients are zero up to rounding, the policy does not improve"
# symptom_check = "all(float(p.grad.abs().max()) < 1e-5 for p in policy.parameters())"
# cause = "the stored log-probabilities were computed with gradients; in exp(new - old) both derivatives cancel"
# fix = "sample and store under no_grad"
# evidence = [{ url = "https://github.com/boyu-ai/Hands-on-RL/issues/96" }, { url = "https://github.com/thu-ml/tianshou/issues/742" }, { url = "https://github.com/huggingface/trl/issues/1720" }]
# ///
"""PPO with clipped objective, one pass over each rollout, on a bandit with context."""
from collections import defaultdict

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Env:
    """Ten parallel contexts; the right arm is given by the largest feature."""

    def __init__(self, n=10, arms=4):
        self.n, self.arms = n, arms

    def observe(self):
        self.x = torch.randn(self.n, self.arms)
        return self.x

    def reward(self, action):
        return (action == self.x.argmax(dim=1)).float()


class RolloutBuffer:
    def __init__(self):
        self.store = defaultdict(list)

    def add(self, **items):
        for key, value in items.items():
            self.store[key].append(value)

    def get(self):
        out = {key: torch.cat(values) for key, values in self.store.items()}
        self.store.clear()
        return out


def collect(env, policy, value, steps):
    buffer = RolloutBuffer()
    for _ in range(steps):
        x = env.observe()
        dist = Categorical(logits=policy(x))  #- here
        action = dist.sample()  #-
        old_logp = dist.log_prob(action)  #- here
#+         with torch.no_grad():
#+             dist = Categorical(logits=policy(x))
#+             action = dist.sample()
#+             old_logp = dist.log_prob(action)
        with torch.no_grad():
            baseline = value(x).squeeze(1)
        buffer.add(x=x, action=action, old_logp=old_logp, reward=env.reward(action), baseline=baseline)  #! here
    return buffer.get()


def update(policy, value, p_opt, v_opt, data, clip=0.2):
    adv = data["reward"] - data["baseline"]
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    logp = Categorical(logits=policy(data["x"])).log_prob(data["action"])
    ratio = torch.exp(logp - data["old_logp"])  #! here
    surrogate = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    p_opt.zero_grad()
    (-surrogate.mean()).backward()  #! also
    p_opt.step()

    v_loss = (value(data["x"]).squeeze(1) - data["reward"]).pow(2).mean()
    v_opt.zero_grad()
    v_loss.backward()
    v_opt.step()
    return data["reward"].mean().item()


torch.manual_seed(0)
env = Env()
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 4))
value = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
p_opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
v_opt = torch.optim.Adam(value.parameters(), lr=1e-2)
rewards = [update(policy, value, p_opt, v_opt, collect(env, policy, value, 8)) for _ in range(20)]
print(f"reward {sum(rewards[:5]) / 5:.2f} -> {sum(rewards[-5:]) / 5:.2f}")
