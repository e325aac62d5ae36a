# /// case
# title = "Returns are normalised by their standard deviation, and one episode is one step long"
# category = "numerics"
# kind = "std-of-single-element"
# kinds_also_ok = ["nan-from-normalisation", "unbiased-std"]
# severity = "error"
# names = ["std", "normalise", "advantage"]
# symptom = "the policy's logits become nan, and the distribution refuses them"
# raises = "ValueError"
# raises_message = "to satisfy the constraint"
# cause = "The unbiased standard deviation of one value is nan, and the small number that is added does not help."
# fix = "std(unbiased=False), or no normalisation of a single return"
# ///
import random

import torch
import torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    """Falls off at either end; the reward is for staying on."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def reset(self):
        self.place = self.rng.choice([-3, -2, 0, 1, 2, 3])
        return self.observe()

    def observe(self):
        return torch.tensor([self.place / 3, self.place ** 2 / 9])

    def step(self, action):
        self.place += (1, -1)[action] if self.rng.random() < 0.9 else 0
        return self.observe(), 1.0, abs(self.place) > 3


def play(env, policy, limit=12):
    observation, log_probs, rewards = env.reset(), [], []
    for _ in range(limit):
        choice = Categorical(logits=policy(observation))  #! also
        action = choice.sample()
        observation, reward, done = env.step(int(action))
        log_probs.append(choice.log_prob(action))
        rewards.append(reward)
        if done:
            break
    return torch.stack(log_probs), rewards


def discounted(rewards, gamma=0.95):
    out, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        out.insert(0, total)
    return torch.tensor(out)


torch.manual_seed(7)
env = Corridor(seed=7)
policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
lengths = []
for episode in range(16):
    log_probs, rewards = play(env, policy)
    goal = discounted(rewards)
    advantage = (goal - goal.mean()) / (goal.std() + 1e-8)  #- here
#+     advantage = (goal - goal.mean()) / (goal.std(unbiased=False) + 1e-8)
    loss = -(log_probs * advantage).sum()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    lengths.append(len(rewards))
print(lengths)
