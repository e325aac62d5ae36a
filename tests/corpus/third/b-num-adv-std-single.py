# /// case
# title = "Advantage normalised by the std of a single sample"
# category = "numerics"
# kind = "nonfinite-value"
# severity = "error"
# names = ["adv", "std", "advantages"]
# difficulty = "medium"
# symptom = "Policy loss is NaN at the first one-step episode; all parameters become NaN."
# raises = "ValueError"
# raises_message = "logits"
# warns = "degrees of freedom is <= 0"
# cause = "std() of one element is NaN (division by n - 1); dividing by it poisons the loss."
# fix = "Normalise over the whole batch of episodes."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/29372" }, { url = "https://github.com/pytorch/pytorch/issues/4320" }]
# ///
"""REINFORCE with normalised returns, three episodes per update."""
import torch
from torch import nn
from torch.distributions import Categorical


class Bandwalk:
    """Walk on a line; the episode ends on leaving it, at the latest after 12 steps."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def reset(self):
        self.x, self.t = torch.randn((), generator=self.g).item(), 0
        return torch.tensor([self.x, 1.0])

    def step(self, a):
        self.x += 0.4 * (2 * a - 1) + 0.1 * torch.randn((), generator=self.g).item()
        self.t += 1
        done = abs(self.x) > 1.5 or self.t >= 12
        return torch.tensor([self.x, 1.0]), 1.0 - abs(self.x), done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def dist(self, obs):
        return Categorical(logits=self.net(obs))  #! also


def discounted(rewards, gamma=0.95):
    out, acc = [], 0.0
    for r in reversed(rewards):
        acc = r + gamma * acc
        out.append(acc)
    return torch.tensor(out[::-1])


def normalise(adv):
    return (adv - adv.mean()) / (adv.std() + 1e-8)  #! here


def play(env, policy):
    obs, done, logp, rewards = env.reset(), False, [], []
    while not done:
        dist = policy.dist(obs)  #! also
        action = dist.sample()
        logp.append(dist.log_prob(action))
        obs, reward, done = env.step(action.item())
        rewards.append(reward)
    return torch.stack(logp), discounted(rewards)


torch.manual_seed(1)
env, policy = Bandwalk(seed=5), Policy()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
lengths = []
for update in range(12):
    logps, returns = zip(*(play(env, policy) for _ in range(3)))  #! also
    advantages = torch.cat([normalise(r) for r in returns])  #- here
#+     advantages = normalise(torch.cat(returns))
    loss = -(torch.cat(logps) * advantages).mean()  #! also
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    lengths += [len(r) for r in returns]
print("episode lengths", lengths)
