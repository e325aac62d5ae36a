# /// case
# title = "Returns of shape (N,) minus values of shape (N, 1) give an N by N advantage"
# category = "loss"
# kind = "broadcast-in-loss"
# kinds_also_ok = ["shape-mismatch-broadcast", "missing-squeeze", "advantage-has-wrong-shape"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["baseline", "advantage", "returns", "squeeze"]
# symptom = "the value loss does not fall below the variance of the returns and the policy learns from averages"
# symptom_check = "advantage.dim() == 2"
# cause = "The trailing axis of the critic's output broadcasts each return against every value."
# fix = "critic(obs).squeeze(-1)"
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(40)
HORIZON, ENVS, GAMMA, DT = 15, 24, 0.97, 0.2


def start(n):
    return torch.stack([torch.rand(n) * 2 + 1, torch.rand(n) - 0.5], dim=1)


def advance(state, action):
    thrust = action.float() - 1.0
    speed = state[:, 1] + DT * thrust
    height = state[:, 0] + DT * speed
    state = torch.stack([height, speed], dim=1)
    return state, 1.0 - height.abs() - 0.2 * speed.abs()


def discounted(rewards):
    running, out = torch.zeros_like(rewards[0]), []
    for r in reversed(rewards):
        running = r + GAMMA * running
        out.append(running)
    return torch.stack(out[::-1])


policy = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([
    {"params": policy.parameters(), "lr": 5e-3},
    {"params": critic.parameters(), "lr": 2e-2},
])

curve = []
for iteration in range(60):
    state, seen, taken, rewards = start(ENVS), [], [], []
    with torch.no_grad():
        for t in range(HORIZON):
            obs = torch.cat([state, torch.full((ENVS, 1), t / HORIZON)], dim=1)
            action = Categorical(logits=policy(obs)).sample()
            state, reward = advance(state, action)
            seen.append(obs)
            taken.append(action)
            rewards.append(reward)
    obs, action = torch.cat(seen), torch.cat(taken)
    returns = discounted(rewards).flatten()

    logp = Categorical(logits=policy(obs)).log_prob(action)
    baseline = critic(obs)  #- here
#+     baseline = critic(obs).squeeze(-1)
    advantage = returns - baseline  #! also
    policy_loss = -(logp * advantage.detach()).mean()  #! also
    value_loss = advantage.square().mean()  #! also
    optimizer.zero_grad()
    (policy_loss + 0.5 * value_loss).backward()
    optimizer.step()
    curve.append((torch.stack(rewards).sum(0).mean().item(), value_loss.item()))

print("return %.2f value loss %.2f" % curve[0])
print("return %.2f value loss %.2f" % curve[-1])
